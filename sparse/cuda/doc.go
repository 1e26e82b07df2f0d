// Package cuda computes block-sparse attention on an NVIDIA GPU. Open loads the
// driver's library at run time. A program that links this package needs the system's
// dynamic loader to start, so that the main program links it only with the build tag
// cuda.
//
// It is not fast: every job is copied to the GPU and back. It shows that the layouts
// of package support mean the same on a GPU. A GPU adds numbers in another order, so
// that results agree with package kern within Tolerance, not bit for bit.
//
// Words: a device is one GPU; a job is that of package kern; a slot is a piece of
// GPU memory that later jobs reuse.
package cuda
