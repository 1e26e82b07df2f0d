// Command attention times the token branch beside its peers, in turns, in one
// run, on the same weights.
package main

import (
	"context"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Dense  denseCmd  `cmd:"" help:"Whole encoders beside ONNX Runtime and PyTorch."`
	Ladder ladderCmd `cmd:"" help:"What run --ladder costs on MiniLM, and how many rows climb."`
	Sparse sparseCmd `cmd:"" help:"Attention alone, block-sparse and dense, beside PyTorch."`
	BF16   bf16Cmd   `cmd:"" name:"bf16" help:"Weights in bf16 beside float32: products, encoders, their errors."`
	Render renderCmd `cmd:"" help:"Write the four pages again from their records; measure nothing."`
}

func main() {
	var c cli
	k := kong.Parse(&c, kong.Name("attention"), kong.Description("Times the token branch beside its peers."))
	rig.Main("attention", func(ctx context.Context) error {
		k.BindTo(ctx, (*context.Context)(nil))
		return k.Run()
	})
}
