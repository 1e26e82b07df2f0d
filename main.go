// Command entropipe turns streams of point clouds and token sequences into tables:
// Kafka in, exact hulls, maxima, Delaunay triangulations and transformer outputs out,
// as Parquet, each record exactly once.
//
// The command line is package cmd. ARCHITECTURE.md follows one record through the
// program.
package main

import (
	"os"

	"entropipe/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:], os.Stdout, os.Stderr)) }
