package main

import (
	"math/rand/v2"

	"entropipe/models/mat"
)

func random(rows, cols int) mat.Matrix {
	r := rand.New(rand.NewPCG(1, uint64(rows*cols)))
	data := make([]float32, rows*cols)
	for i := range data {
		data[i] = float32(r.NormFloat64())
	}
	return mat.Of(rows, cols, data)
}

// ours is a row's call. Functions take their numbers in as many tiles as there
// are threads; weights are packed before.
func ours(r row, threads int) func() {
	if r.Op == "mul" {
		var w mat.Weights
		w.Pack(random(r.K, r.N))
		a, dst := random(r.M, r.K), random(r.M, r.N)
		return func() { w.Mul(dst, a, mat.Epilogue{}, threads) }
	}
	if r.Op == "tmul" {
		a, b, dst := random(r.M, r.K), random(r.M, r.N), random(r.K, r.N)
		return func() { mat.TMul(dst, a, b, threads) }
	}
	x, dst, ones := random(r.M, r.N), random(r.M, r.N), make([]float32, r.N)
	for i := range ones {
		ones[i] = 1
	}
	numbers := func(f func(dst, src []float32)) func(lo, hi int) {
		return func(lo, hi int) { f(dst.Data[lo*r.N:hi*r.N], x.Data[lo*r.N:hi*r.N]) }
	}
	tile := map[string]func(lo, hi int){
		"exp":       numbers(mat.Exp),
		"tanh":      numbers(mat.Tanh),
		"gelu":      numbers(mat.GELU),
		"gelu tanh": numbers(mat.GELUTanh),
		"silu":      numbers(mat.SiLU),
		"softmax": func(lo, hi int) { // in place: the copy is part of it
			copy(dst.Data[lo*r.N:hi*r.N], x.Data[lo*r.N:hi*r.N])
			mat.Softmax(dst.Slice(lo, hi), 1)
		},
		"layer norm": func(lo, hi int) { mat.LayerNorm(dst.Slice(lo, hi), x.Slice(lo, hi), ones, ones, 1e-5) },
		"rms norm":   func(lo, hi int) { mat.RMSNorm(dst.Slice(lo, hi), x.Slice(lo, hi), ones, 1e-5) },
	}[r.Op]
	return func() { mat.Tiles(r.M, (r.M+threads-1)/threads, threads, tile) }
}
