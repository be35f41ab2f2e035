// The gradient of the features that the k-largest selection read, summed by columns.
//
// Each selected value sends its gradient to one feature of one node, so the gradients of a row
// scatter over memory in pieces of four bytes. Two kernels avoid that, without atomics:
//
// 1. `pack_rows` sorts the gradients of each row by entry and feature. Those that belong to one
//    entry then lie together. A bit per entry and feature says which were selected.
// 2. `sum_columns` reads, for each column, the gradients of all its entries and adds them up.
//
// Every sum is taken by one thread in the order of the entries, so the same input gives the same
// bits.
//
// Compiled with: INDEX, the type of rowptr and col; CHOSEN, that of the positions; CHANNELS and
// SLOTS, the features and k, so that loops have fixed ends and no address needs a division; WORDS,
// 32-bit words of a run; BLOCK, threads of a block; THREADS of a row, 32 or all of the block;
// WEIGHTED, EVERY, PARTS, MAPPED, ADD: 0 or 1.

#define SIZE (SLOTS * CHANNELS)
#define ALL_WORDS ((CHANNELS + 31) / 32)
#define GROUPS ((ALL_WORDS + WORDS - 1) / WORDS)

// Up to 96 features of an entry: which were selected, and where their gradients begin within the
// packed row. An entry has as many runs as its features need.
struct __align__(16) Run {
    unsigned mask[3];
    unsigned offset;
};

#if THREADS == 32
#define SYNCHRONISE() __syncwarp()
#else
#define SYNCHRONISE() __syncthreads()
#endif

// The exclusive sum over the threads of a row, which starts at `before`; then `before` is the
// total. All of them call it.
__device__ unsigned scan(unsigned count, unsigned& before) {
    unsigned lane = threadIdx.x % 32;
    unsigned inclusive = count;
    for (int step = 1; step < 32; step *= 2) {
        unsigned other = __shfl_up_sync(0xFFFFFFFFu, inclusive, step);
        if (lane >= step) inclusive += other;
    }
    unsigned earlier = before;
#if THREADS == 32
    before += __shfl_sync(0xFFFFFFFFu, inclusive, 31);
#else
    __shared__ unsigned sums[THREADS / 32];
    if (lane == 31) sums[threadIdx.x / 32] = inclusive;
    __syncthreads();
    for (unsigned w = 0; w < THREADS / 32; ++w) {
        if (w < threadIdx.x / 32) earlier += sums[w];
        before += sums[w];
    }
    __syncthreads();  // before the next call writes the sums
#endif
    return earlier + inclusive - count;
}

// THREADS per row. `first` is where the selected values begin in a row of `grad`, which has `slots`
// of them. Dynamic shared memory, per row: for each word of `chunk` entries, which are taken at a
// time, its mask and where its gradients begin; and the packed row.
extern "C" __global__ void __launch_bounds__(BLOCK, 1536 / BLOCK) pack_rows(
    const float* __restrict__ grad, const CHOSEN* __restrict__ chosen,
    const INDEX* __restrict__ rowptr, float* __restrict__ packed, Run* __restrict__ runs,
    int num_rows, int first, int slots, int chunk) {
    extern __shared__ unsigned shared[];
    long long row = (long long)blockIdx.x * (BLOCK / THREADS) + threadIdx.x / THREADS;
    if (row >= num_rows) return;
    int thread = threadIdx.x % THREADS, lane = threadIdx.x % 32, warp = thread / 32;
    unsigned* masks = shared + threadIdx.x / THREADS * (2 * ALL_WORDS * chunk + SIZE);
    unsigned* offsets = masks + ALL_WORDS * chunk;
    float* stage = (float*)(offsets + ALL_WORDS * chunk);
    long long start = rowptr[row];
    int degree = (int)(rowptr[row + 1] - start);
    grad += (row * slots + first) * CHANNELS;
    chosen += row * SIZE;
    packed += row * SIZE;
    unsigned mine = 1u << lane, below = mine - 1, before = 0;
    for (int from = 0; from < degree; from += chunk) {
        int count = min(degree - from, chunk);
        for (int n = thread; n < ALL_WORDS * chunk; n += THREADS) masks[n] = 0;
        SYNCHRONISE();
        // A warp takes 32 features of a slot.
#pragma unroll 4
        for (int s = warp; s < SLOTS; s += THREADS / 32)
#pragma unroll
            for (int w = 0; w < ALL_WORDS; ++w) {
                int c = 32 * w + lane, p = c < CHANNELS ? (int)chosen[s * CHANNELS + c] : -1;
                if (p >= from && p - from < count) atomicOr(masks + w * chunk + p - from, mine);
            }
        SYNCHRONISE();
        for (int n = 0; n < count; n += THREADS) {
            int p = n + thread;
            unsigned selected = 0;
            if (p < count) {
#pragma unroll
                for (int w = 0; w < ALL_WORDS; ++w) selected += __popc(masks[w * chunk + p]);
            }
            unsigned offset = scan(selected, before);
            if (p < count) {
                Run* place = runs + (start + from + p) * GROUPS;
#pragma unroll
                for (int g = 0; g < GROUPS; ++g) {
                    Run run{{0, 0, 0}, offset};
#pragma unroll
                    for (int w = g * WORDS; w < (g + 1) * WORDS && w < ALL_WORDS; ++w) {
                        unsigned mask = masks[w * chunk + p];
                        run.mask[w - g * WORDS] = mask;
                        offsets[w * chunk + p] = offset;
                        offset += __popc(mask);
                    }
                    place[g] = run;
                }
            }
        }
        SYNCHRONISE();
#pragma unroll 4
        for (int s = warp; s < SLOTS; s += THREADS / 32)
#pragma unroll
            for (int w = 0; w < ALL_WORDS; ++w) {
                int c = 32 * w + lane, p = c < CHANNELS ? (int)chosen[s * CHANNELS + c] : -1;
                if (p >= from && p - from < count) {
                    int at = w * chunk + p - from;
                    stage[offsets[at] + __popc(masks[at] & below)] = grad[s * CHANNELS + c];
                }
            }
        SYNCHRONISE();
    }
#pragma unroll 4
    for (unsigned n = thread; n < before; n += THREADS) packed[n] = stage[n];
}

#define BATCH 8  // entries whose gradients are read at once

// One warp per column, or part of a long one, and run. Entry t of a column is entry `entry[t]` of
// the structure, in row `row_of[t]`.
extern "C" __global__ void __launch_bounds__(128) sum_columns(
    const INDEX* __restrict__ colptr, const INDEX* __restrict__ entry,
    const INDEX* __restrict__ row_of, const float* __restrict__ packed,
    const Run* __restrict__ runs, const float* __restrict__ weight,
    const float* __restrict__ every, const long long* __restrict__ part_column,
    const long long* __restrict__ part_first, const INDEX* __restrict__ out_row,
    float* __restrict__ out, int num_columns, int part, int stride) {
    __shared__ Run near_runs[128];
    __shared__ int near_rows[128];
#if WEIGHTED
    __shared__ float near_weights[128];
#endif
    unsigned lane = threadIdx.x % 32, below = (1u << lane) - 1, mine = 1u << lane;
    int base = threadIdx.x / 32 * 32;
    long long warp = (long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    long long column = warp / GROUPS;
    int group = (int)(warp % GROUPS), c = 32 * WORDS * group + lane;
    if (column >= num_columns) return;
#if PARTS
    long long start = colptr[part_column[column]] + part_first[column];
    long long end = min((long long)colptr[part_column[column] + 1], start + part);
#else
    long long start = colptr[column], end = colptr[column + 1];
    if (end - start > part) return;
#endif
    float total[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) total[w] = 0.0f;
    for (long long t = start; t < end; t += 32) {
        // Each lane looks up one entry; then all lanes add the entries one after the other.
        near_runs[threadIdx.x] = Run{{0, 0, 0}, 0};
        near_rows[threadIdx.x] = 0;
        if (t + lane < end) {
            long long e = entry[t + lane];
            near_runs[threadIdx.x] = runs[e * GROUPS + group];
            near_rows[threadIdx.x] = (int)row_of[t + lane];
#if WEIGHTED
            near_weights[threadIdx.x] = weight[e];
#endif
        }
        __syncwarp();
        int count = (int)min(end - t, 32LL);
        for (int first = 0; first < count; first += BATCH) {
            float value[BATCH][WORDS];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                Run run = near_runs[base + first + b];
                long long row = near_rows[base + first + b];
                const float* from = packed + row * SIZE + run.offset;
#pragma unroll
                for (int w = 0; w < WORDS; ++w) {
                    value[b][w] = 0.0f;
                    if (run.mask[w] & mine) value[b][w] = __ldg(from + __popc(run.mask[w] & below));
                    from += __popc(run.mask[w]);
#if EVERY
                    if (first + b < count && c + 32 * w < CHANNELS)
                        value[b][w] += __ldg(every + row * CHANNELS + c + 32 * w);
#endif
                }
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (first + b >= count) break;
#pragma unroll
                for (int w = 0; w < WORDS; ++w) {
                    float v = value[b][w];
#if WEIGHTED
                    // A zero was not selected, or adds nothing, whatever the weight is.
                    if (v != 0.0f) v *= near_weights[base + first + b];
#endif
                    total[w] += v;
                }
            }
        }
        __syncwarp();  // before the next entries are put there
    }
#if MAPPED
    column = out_row[column];
#endif
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        if (c + 32 * w >= CHANNELS) break;
        float* place = out + column * stride + c + 32 * w;
#if ADD
        total[w] += *place;
#endif
        *place = total[w];
    }
}
