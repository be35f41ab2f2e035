// CUDA C++ on a CPU, for tests: the threads of a block are fibers of one thread, which take turns
// where CUDA synchronises. One block runs after the other.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

using std::max;
using std::min;

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct Dim {
    unsigned x = 0, y = 0, z = 0;
};

struct Barrier {
    unsigned arrived = 0, round = 0;
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    Dim index;
    bool done = false;
};

static Dim blockIdx, blockDim;
static std::vector<Fiber> fibers;
static Fiber* running;
static ucontext_t scheduler;
static std::vector<Barrier> warp_barriers;
static Barrier block_barrier;
static std::vector<unsigned long long> shuffled;
// For dynamic shared memory; filled with garbage before each block, as on a GPU.
alignas(16) unsigned shared_memory[1 << 16];

#define threadIdx (running->index)

static void yield() { swapcontext(&running->context, &scheduler); }

static void wait(Barrier& barrier, unsigned expected) {
    unsigned round = barrier.round;
    if (++barrier.arrived == expected) {
        barrier.arrived = 0;
        ++barrier.round;
        return;
    }
    while (barrier.round == round) yield();
}

static void __syncwarp() { wait(warp_barriers[threadIdx.x / 32], 32); }
static void __syncthreads() { wait(block_barrier, blockDim.x); }

template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
    unsigned long long bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    shuffled[threadIdx.x] = bits;
    __syncwarp();
    bits = shuffled[threadIdx.x / 32 * 32 + lane];
    __syncwarp();
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, int step) {
    int lane = threadIdx.x % 32;
    return __shfl_sync(mask, value, lane >= step ? lane - step : lane);
}

template <typename T>
T __ldg(const T* place) {
    return *place;
}

static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static unsigned atomicOr(unsigned* place, unsigned bits) {
    unsigned before = *place;
    *place |= bits;
    return before;
}
static int __float_as_int(float value) {
    int bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
static float __int_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

template <typename... A, std::size_t... I>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<A>*>(arguments[I])...);
}

template <typename Kernel>
struct Launch {
    static inline Kernel kernel;
    static inline void** arguments;
};

template <typename... A>
void body(void (*kernel)(A...), void** arguments) {
    call(kernel, arguments, std::index_sequence_for<A...>{});
}

template <typename Kernel>
void start() {
    body(Launch<Kernel>::kernel, Launch<Kernel>::arguments);
    running->done = true;
    swapcontext(&running->context, &scheduler);
}

template <typename Kernel>
void launch(Kernel kernel, int grid_x, int grid_y, int block, void** arguments) {
    Launch<Kernel>::kernel = kernel;
    Launch<Kernel>::arguments = arguments;
    blockDim = {unsigned(block), 1, 1};
    for (int y = 0; y < grid_y; ++y)
        for (int x = 0; x < grid_x; ++x) {
            blockIdx = {unsigned(x), unsigned(y), 0};
            std::memset(shared_memory, 0x5A, sizeof(shared_memory));
            fibers.clear();
            fibers.resize(block);
            warp_barriers.assign(block / 32, {});
            block_barrier = {};
            shuffled.assign(block, 0);
            for (int t = 0; t < block; ++t) {
                Fiber& fiber = fibers[t];
                fiber.index.x = t;
                fiber.stack.reset(new char[65536]);
                getcontext(&fiber.context);
                fiber.context.uc_stack.ss_sp = fiber.stack.get();
                fiber.context.uc_stack.ss_size = 65536;
                fiber.context.uc_link = &scheduler;
                makecontext(&fiber.context, start<Kernel>, 0);
            }
            for (bool left = true; left;) {
                left = false;
                for (Fiber& fiber : fibers) {
                    if (fiber.done) continue;
                    left = true;
                    running = &fiber;
                    swapcontext(&scheduler, &fiber.context);
                }
            }
        }
}
