// Block-sparse attention of one sequence on a GPU, compiled to attend.ptx by
// compile.py. kern.Attend says what it computes; the order of the additions is
// another, so results agree within a tolerance, not bit for bit.
//
// A block of threads works on a tile of queries of one head; a warp takes one
// query after the other. Keys come in chunks of 32: each lane has the score of
// one key, the running maximum and sum are the warp's, and each lane adds up
// every 32nd number of the output (online softmax, Milakov and Gimelshein 2018).

#define WARP 32
#define WARPS 8
#define WIDEST 256 // numbers of a head, at most
#define ALL 0xffffffffu

// Job is the kernel's arguments, laid out as kernelJob in job.go. Layouts are one
// after the other, as support.Layout has them; layout[h] is that of key and value
// head h, -1 for dense.
struct Job {
  const float *q, *k, *v;
  float *out;
  const int *layout;              // [kvHeads]
  const int *block, *rowStart;    // [layouts]: block size, and where its rows begin in rowPtr
  const int *rowPtr, *col;        // rowPtr counts in all of col
  const unsigned char *kind;      // [entries]: 0 full, 1 edge, 2 masked
  const int *at;                  // [entries]: where a masked entry's bits begin, in words
  const unsigned long long *bits;
  const int *order, *orderStart;  // [layouts]: where its order begins; -1: none
  int queries, keys, heads, kvHeads, dim;
  int qStride, kStride, vStride, outStride;
  int causal, offset;
  float scale;
};

__device__ float warpMax(float x) {
  for (int s = WARP / 2; s > 0; s /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, s));
  return x;
}

__device__ float warpSum(float x) {
  for (int s = WARP / 2; s > 0; s /= 2) x += __shfl_xor_sync(ALL, x, s);
  return x;
}

// State of one query: what it has seen so far. Lanes share top and sum.
struct Row {
  float top, sum;
  float out[WIDEST / WARP];
};

// chunk adds 32 keys, one a lane; seen says whether this lane's counts.
__device__ void chunk(const Job &j, Row &r, const float *q, int kv, int key, bool seen, int lane) {
  float score = -INFINITY;
  if (seen) {
    const float *k = j.k + (long long)key * j.kStride + kv * j.dim;
    float s = 0;
#pragma unroll 4
    for (int x = 0; x < j.dim; x++) s = fmaf(q[x], k[x], s);
    score = s * j.scale;
  }
  float top = fmaxf(r.top, warpMax(score));
  if (top == -INFINITY) return; // none of them counts, nor did any before
  float old = r.top == -INFINITY ? 0 : expf(r.top - top);
  float p = seen ? expf(score - top) : 0;
  r.sum = r.sum * old + warpSum(p);
  r.top = top;
  #pragma unroll
  for (int c = 0; c < WIDEST / WARP; c++) r.out[c] *= old; // constant indices: registers
#pragma unroll 1
  for (int i = 0; i < WARP; i++) {
    float w = __shfl_sync(ALL, p, i);
    int from = __shfl_sync(ALL, key, i);
    if (w == 0) continue; // of the whole warp
    const float *v = j.v + (long long)from * j.vStride + kv * j.dim;
#pragma unroll
    for (int c = 0; c < WIDEST / WARP; c++)
      if (c * WARP + lane < j.dim) r.out[c] = fmaf(w, v[c * WARP + lane], r.out[c]);
  }
}

// dense adds all keys that the query may see.
__device__ void dense(const Job &j, Row &r, const float *q, int kv, int position, int lane) {
  int end = j.causal ? min(j.keys, position + 1) : j.keys;
  for (int k = 0; k < end; k += WARP) chunk(j, r, q, kv, k + lane, k + lane < end, lane);
}

// sparse adds the keys of the blocks that the query's row of a layout names.
__device__ void sparse(const Job &j, Row &r, const float *q, int kv, int layout, int position, int lane) {
  int block = j.block[layout], row = j.rowStart[layout] + position / block;
  const int *order = j.orderStart[layout] < 0 ? 0 : j.order + j.orderStart[layout];
  for (int e = j.rowPtr[row]; e < j.rowPtr[row + 1]; e++) {
    for (int c = 0; c < block; c += WARP) {
      int within = c + lane, place = j.col[e] * block + within;
      bool seen = within < block && place < j.keys;
      int key = seen ? (order ? order[place] : place) : 0;
      seen = seen && key < j.keys && !(j.causal && key > position);
      if (seen && j.kind[e] == 2) {
        int bit = position % block * block + within;
        seen = j.bits[j.at[e] + bit / 64] >> bit % 64 & 1;
      }
      chunk(j, r, q, kv, key, seen, lane);
    }
  }
}

extern "C" __global__ void attend(Job j) {
  __shared__ float queries[WARPS][WIDEST];
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  int head = blockIdx.y, kv = head * j.kvHeads / j.heads;
  for (int i = blockIdx.x * WARPS + warp; i < j.queries; i += gridDim.x * WARPS) {
    float *q = queries[warp];
    __syncwarp();
    for (int x = lane; x < j.dim; x += WARP) q[x] = j.q[(long long)i * j.qStride + head * j.dim + x];
    __syncwarp();
    Row r;
    r.top = -INFINITY;
    r.sum = 0;
    for (int c = 0; c < WIDEST / WARP; c++) r.out[c] = 0;
    int layout = j.layout[kv];
    if (layout < 0) dense(j, r, q, kv, j.offset + i, lane);
    else sparse(j, r, q, kv, layout, j.offset + i, lane);
    float *out = j.out + (long long)i * j.outStride + head * j.dim;
#pragma unroll
    for (int c = 0; c < WIDEST / WARP; c++)
      if (c * WARP + lane < j.dim) out[c * WARP + lane] = r.sum > 0 ? r.out[c] / r.sum : 0;
  }
}
