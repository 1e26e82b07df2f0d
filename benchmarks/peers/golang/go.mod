module entropipe/benchmarks/peers/golang

go 1.26

require (
	github.com/golang/geo v0.0.0-20260818125358-b200a1149890
	github.com/peterstace/simplefeatures v0.50.0
)
