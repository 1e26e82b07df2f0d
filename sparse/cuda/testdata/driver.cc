// A driver for machines without a GPU: it has the functions that package cuda
// calls, and runs attend.cu, compiled for the host, with the lanes of a warp in
// step. So tests see the kernel's source, its arguments and every call of the
// driver, but not the PTX: of that it checks the entry's name and the size of its
// parameters, which the real driver would hold against the launch.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

struct Dim {
  unsigned x, y, z;
};
static Dim threadIdx, blockIdx, gridDim;

static const int lanes = 32;
static ucontext_t scheduler, fiber[lanes]; // to begin; then jumps, which need no system call
static jmp_buf back, point[lanes];
static bool ended[lanes];
static int lane;
static uint32_t slot[2][lanes]; // of this exchange and the last one
static int phase[lanes];

// wait lets the other lanes come as far.
static void wait() {
  if (!_setjmp(point[lane])) _longjmp(back, 1);
}

static uint32_t exchange(uint32_t bits, int from) {
  int side = phase[lane]++ % 2, self = lane;
  slot[side][self] = bits;
  wait();
  return slot[side][from];
}
template <typename T>
static T shuffle(T x, int from) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits = exchange(bits, from);
  memcpy(&x, &bits, 4);
  return x;
}
template <typename T>
static T __shfl_sync(unsigned, T x, int from) {
  return shuffle(x, from);
}
template <typename T>
static T __shfl_xor_sync(unsigned, T x, int mask) {
  return shuffle(x, lane ^ mask);
}
static void __syncwarp() { exchange(0, lane); }

using std::max;
using std::min;
#define __device__ static
#define __global__
#define __shared__ static
#include "../attend.cu"

static const Job *current;
static void enter() {
  attend(*current);
  ended[lane] = true;
  _longjmp(back, 1);
}

static void warp(int number) {
  static char *stacks = static_cast<char *>(malloc(lanes << 16));
  for (int i = 0; i < lanes; i++) {
    getcontext(&fiber[i]);
    fiber[i].uc_stack.ss_sp = stacks + (i << 16);
    fiber[i].uc_stack.ss_size = 1 << 16;
    makecontext(&fiber[i], enter, 0);
    ended[i] = false;
    phase[i] = 0;
  }
  static int i; // these outlive the jumps
  static bool first, more;
  for (first = more = true; more; first = false) {
    more = false;
    for (i = 0; i < lanes; i++) {
      if (ended[i]) continue;
      lane = i;
      threadIdx = {unsigned(number * lanes + i), 0, 0};
      if (!_setjmp(back)) {
        if (first) setcontext(&fiber[i]);
        _longjmp(point[i], 1);
      }
      more = more || !ended[i];
    }
  }
}

// What was allocated, so that a copy beyond it is an error, as on a GPU.
static std::map<uint64_t, size_t> allocated;
static bool inside(uint64_t at, size_t size) {
  auto b = allocated.upper_bound(at);
  return b != allocated.begin() && (--b, at + size <= b->first + b->second);
}

enum { INVALID = 1, MEMORY = 2, IMAGE = 200 };

extern "C" {
int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuDeviceGet(int *d, int) { return *d = 0, 0; }
int cuDeviceGetName(char *name, int n, int) { return strncpy(name, "emulated", n), 0; }
int cuDevicePrimaryCtxRetain(void **c, int) { return *c = &allocated, 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return allocated.empty() ? 0 : INVALID; }
int cuCtxSetCurrent(void *c) { return c == &allocated ? 0 : INVALID; }
int cuModuleLoadData(void **m, const char *image) {
  const char *entry = strstr(image, ".entry attend(");
  char parameter[64];
  snprintf(parameter, sizeof parameter, "attend_param_0[%zu]", sizeof(Job));
  if (!strstr(image, ".version") || !entry || !strstr(entry, parameter)) return IMAGE;
  return *m = &scheduler, 0;
}
int cuModuleUnload(void *) { return 0; }
int cuModuleGetFunction(void **f, void *, const char *name) { return *f = &current, strcmp(name, "attend") ? INVALID : 0; }
int cuMemAlloc_v2(uint64_t *at, size_t size) {
  if (size == 0) return INVALID;
  if (size > size_t(1) << 30) return MEMORY;
  *at = reinterpret_cast<uint64_t>(malloc(size));
  allocated[*at] = size;
  return 0;
}
int cuMemFree_v2(uint64_t at) {
  if (!allocated.erase(at)) return INVALID;
  return free(reinterpret_cast<void *>(at)), 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
  if (!inside(to, size)) return INVALID;
  return memcpy(reinterpret_cast<void *>(to), from, size), 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
  if (!inside(from, size)) return INVALID;
  return memcpy(to, reinterpret_cast<void *>(from), size), 0;
}
int cuLaunchKernel(void *, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void *, void **args, void *) {
  if (!gx || !gy || gz != 1 || bx != WARPS * WARP || by != 1 || bz != 1) return INVALID;
  current = static_cast<Job *>(args[0]);
  gridDim = {gx, gy, gz};
  for (unsigned y = 0; y < gy; y++)
    for (unsigned x = 0; x < gx; x++)
      for (int w = 0; w < WARPS; w++) blockIdx = {x, y, 0}, warp(w);
  return 0;
}
int cuCtxSynchronize() { return 0; }
int cuGetErrorName(int status, const char **name) {
  *name = status == INVALID ? "CUDA_ERROR_INVALID_VALUE" : status == MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_INVALID_IMAGE";
  return 0;
}
}
