// Package cuda runs block-sparse attention on an NVIDIA GPU, where there is
// one: the driver's library is looked for when it is asked for. A program that
// links this package needs the system's dynamic loader to start, so package
// main does only with the build tag cuda.
//
// It is here for correctness, not for speed: every job is copied to the GPU and
// back. What a GPU adds up in another order differs in the last bits, so rows
// made with it agree with those of package kern within Tolerance, not bit for
// bit.
package cuda
