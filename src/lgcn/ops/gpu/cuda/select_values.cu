// The values of the k-largest selection, without the positions that a backward pass needs.
//
// One thread selects for one feature of one row: it takes in TILE neighbours at a time, sorts them
// by a network, and merges them into its K slots. Everything is in registers. What a network does
// depends on no value, so the threads of a warp never diverge there.
//
// Values are compared as floats. NaN ranks above all numbers but is lost in such a comparison, so
// its presence is noticed by a sum, and the row is then selected again by integer keys.
//
// Compiled with: INDEX, the type of rowptr and col; K, slots, a power of two of at least TILE;
// WEIGHTED, COMPETE, SUM, MEAN, OWN, LAST: 0 or 1; PART, the longest row that one thread selects
// from; WARPS that share a longer one.

#define TILE 8

__device__ __forceinline__ void order(float& a, float& b) {
    float larger = fmaxf(a, b);
    b = fminf(a, b);
    a = larger;
}

// The 19 comparisons of the smallest network for eight values; the largest comes first.
__device__ __forceinline__ void sort_tile(float (&t)[TILE]) {
    order(t[0], t[2]); order(t[1], t[3]); order(t[4], t[6]); order(t[5], t[7]);
    order(t[0], t[4]); order(t[1], t[5]); order(t[2], t[6]); order(t[3], t[7]);
    order(t[0], t[1]); order(t[2], t[3]); order(t[4], t[5]); order(t[6], t[7]);
    order(t[2], t[4]); order(t[3], t[5]);
    order(t[1], t[4]); order(t[3], t[6]);
    order(t[1], t[2]); order(t[3], t[4]); order(t[5], t[6]);
}

// Sorts slots that fall and then rise.
__device__ __forceinline__ void merge(float (&slots)[K]) {
#pragma unroll
    for (int gap = K / 2; gap > 0; gap /= 2)
#pragma unroll
        for (int i = 0; i < K; ++i)
            if ((i & gap) == 0) order(slots[i], slots[i + gap]);
}

// Joins sorted values to the sorted slots: of each of the last slots and its partner, the larger
// stays. What stays falls and then rises.
template <int COUNT>
__device__ __forceinline__ void join(float (&slots)[K], const float (&sorted)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        slots[K - COUNT + i] = fmaxf(slots[K - COUNT + i], sorted[COUNT - 1 - i]);
    merge(slots);
}

// Integers in the order of the floats, NaN above all; `value` is not -0.
__device__ __forceinline__ int key_of(float value) {
    int bits = __float_as_int(value);
    return value != value ? 0x7FFFFFFF : bits ^ ((bits >> 31) & 0x7FFFFFFF);
}

__device__ __forceinline__ float value_of(int key) {
    return __int_as_float(key ^ ((key >> 31) & 0x7FFFFFFF));
}

// What is selected from: a feature of the neighbours of one row.
struct Neighbours {
    const float* x;  // that feature of node 0
    const INDEX* col;
    const float* weight;
    int degree, channels;

    // The feature of neighbour p, times the weight of its entry. A -0 becomes 0.
    __device__ __forceinline__ float operator[](int p) const {
        float value = __ldg(x + (long long)col[p] * channels);
#if WEIGHTED
        value *= __ldg(weight + p);
#endif
        return value + 0.0f;
    }
};

// What a thread has found.
struct Found {
    float slots[K];
    float total;      // the sum of all neighbours, if it is wanted
    float unordered;  // NaN if there was NaN, or an infinity, and 0 otherwise
};

__device__ __forceinline__ void take_in(Found& found, const float (&tile)[TILE], int count) {
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
        if (i < count) {
            found.unordered = fmaf(tile[i], 0.0f, found.unordered);
#if SUM
            found.total += tile[i];
#endif
        }
    }
}

// Selects among the neighbours from..from + TILE - 1, and every `step` further.
__device__ __forceinline__ void select(Found& found, const Neighbours& near, int from, int step) {
    const float lowest = __int_as_float(0xFF800000);  // minus infinity
#pragma unroll
    for (int s = 0; s < K; ++s) found.slots[s] = lowest;
    found.total = found.unordered = 0.0f;
    float tile[TILE];
    int p = from;
    for (; p + TILE <= near.degree; p += step) {
#pragma unroll
        for (int i = 0; i < TILE; ++i) tile[i] = near[p + i];
        take_in(found, tile, TILE);
        sort_tile(tile);
        join(found.slots, tile);
    }
    if (p < near.degree) {
#pragma unroll
        for (int i = 0; i < TILE; ++i) tile[i] = p + i < near.degree ? near[p + i] : lowest;
        take_in(found, tile, near.degree - p);
        sort_tile(tile);
        join(found.slots, tile);
    }
}

// As `select`, one neighbour after the other.
__device__ __noinline__ void select_by_keys(float* slots, const Neighbours& near) {
    int keys[K];
#pragma unroll
    for (int s = 0; s < K; ++s) keys[s] = (int)0x80000000;
    for (int p = 0; p < near.degree; ++p) {
        int key = key_of(near[p]);
#pragma unroll
        for (int s = 0; s < K; ++s) {
            int larger = max(keys[s], key);
            key = min(keys[s], key);
            keys[s] = larger;
        }
    }
#pragma unroll
    for (int s = 0; s < K; ++s) slots[s] = value_of(keys[s]);
}

struct Arguments {
    const float* x;
    const INDEX *rowptr, *col;
    const float *weight, *own, *last, *divisor;
    float* values;
    int channels, k;
};

__device__ __forceinline__ Neighbours neighbours(const Arguments& a, long long row, int c) {
    long long start = a.rowptr[row];
    int degree = (int)(a.rowptr[row + 1] - start);
    return {a.x + c, a.col + start, a.weight + start, degree, a.channels};
}

// Writes a feature of a row of the result: own, the k largest, and the sum or what is last.
__device__ __forceinline__ void write(
    const Arguments& a, Found& found, const Neighbours& near, long long row, int c) {
    if (found.unordered != 0.0f) {
        float slots[K];
        select_by_keys(slots, near);
#pragma unroll
        for (int s = 0; s < K; ++s) found.slots[s] = slots[s];
    }
    long long place = row * a.channels + c;
    float* out = a.values + row * (OWN + a.k + SUM + LAST) * a.channels + c;
#if OWN
    *out = a.own[place];
    out += a.channels;
#endif
#pragma unroll
    for (int s = 0; s < K; ++s) {
        if (s < a.k) {
            float value = s < near.degree ? found.slots[s] : 0.0f;
#if COMPETE
            if (value < 0.0f) value = 0.0f;
#endif
            out[(long long)s * a.channels] = value;
        }
    }
    out += (long long)a.k * a.channels;
#if SUM && MEAN
    *out = found.total / a.divisor[row];
#elif SUM
    *out = found.total;
#elif LAST
    *out = a.last[place];
#endif
}

// Threads are numbered by row and feature together, so that a warp is full whatever the number of
// features is.
extern "C" __global__ void __launch_bounds__(256) select_values(
    const float* __restrict__ x, const INDEX* __restrict__ rowptr, const INDEX* __restrict__ col,
    const float* __restrict__ weight, const float* __restrict__ own,
    const float* __restrict__ last, const float* __restrict__ divisor,
    float* __restrict__ values, int num_rows, int channels, int k) {
    long long first = (long long)blockIdx.x * blockDim.x;
    unsigned within = (unsigned)(first % channels) + threadIdx.x;
    long long row = first / channels + within / (unsigned)channels;
    int c = within % (unsigned)channels;
    if (row >= num_rows) return;
    Arguments arguments{x, rowptr, col, weight, own, last, divisor, values, channels, k};
    if (rowptr[row + 1] - rowptr[row] > PART) return;
    Neighbours near = neighbours(arguments, row, c);
    Found found;
    select(found, near, 0, TILE);
    write(arguments, found, near, row, c);
}

// A block per long row and 32 features: its warps select among every WARPS-th tile, and what they
// have found is joined in pairs.
extern "C" __global__ void __launch_bounds__(32 * WARPS) select_long_rows(
    const float* __restrict__ x, const INDEX* __restrict__ rowptr, const INDEX* __restrict__ col,
    const float* __restrict__ weight, const float* __restrict__ own,
    const float* __restrict__ last, const float* __restrict__ divisor,
    float* __restrict__ values, const long long* __restrict__ long_row, int channels, int k) {
    __shared__ float shared[WARPS][K + 2][32];
    long long row = long_row[blockIdx.x];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, c = 32 * blockIdx.y + lane;
    Arguments arguments{x, rowptr, col, weight, own, last, divisor, values, channels, k};
    // Threads without a feature of their own take the last one, and write nothing.
    Neighbours near = neighbours(arguments, row, min(c, channels - 1));
    Found found;
    select(found, near, TILE * warp, TILE * WARPS);
#pragma unroll
    for (int apart = WARPS / 2; apart > 0; apart /= 2) {
        if (warp >= apart && warp < 2 * apart) {
#pragma unroll
            for (int s = 0; s < K; ++s) shared[warp][s][lane] = found.slots[s];
            shared[warp][K][lane] = found.total;
            shared[warp][K + 1][lane] = found.unordered;
        }
        __syncthreads();
        if (warp < apart) {
            float other[K];
#pragma unroll
            for (int s = 0; s < K; ++s) other[s] = shared[warp + apart][s][lane];
            join(found.slots, other);
            found.total += shared[warp + apart][K][lane];
            found.unordered += shared[warp + apart][K + 1][lane];
        }
    }
    if (warp == 0 && c < channels) write(arguments, found, near, row, c);
}
