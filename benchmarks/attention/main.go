// Command attention times the token branch beside its peers, in turns, in one
// run, on the same weights.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.BindTo(ctx, (*context.Context)(nil))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "attention:", err)
		os.Exit(1)
	}
}
