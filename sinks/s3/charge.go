package s3

import (
	"entropipe/ingest/bucket"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Prices says what Dollars counts with.
const Prices = "0.005 $ a 1,000 PUT, COPY, POST and LIST, 0.0004 $ a 1,000 GET and HEAD: S3 Standard in us-east-1"

// Dollars returns what requests cost at Prices. DELETE costs nothing.
func Dollars(r bucket.Requests) float64 {
	return float64(r.Put+r.Copy+r.List)*0.005/1000 + float64(r.Get+r.Head+r.Other)*0.0004/1000
}

// Charge returns what a commit of these files takes, if no request has to be repeated.
func (s *Store) Charge(files []record.File) sinks.Charge {
	c := sinks.Charge{Put: 1} // the manifest
	for i := range files {
		size := files[i].Bytes
		c.Put++
		if parts := int64(partPieces * pieceSize); size > largestPut {
			c.Put += 1 + (size+parts-1)/parts
		}
		c.Copy++
		c.Delete = 1
		c.Bytes += size
	}
	return c
}

// Price returns what a commit costs in dollars, and at which prices.
func (s *Store) Price(c sinks.Charge) (dollars float64, prices string) {
	return Dollars(bucket.Requests{Put: c.Put, Copy: c.Copy, Delete: c.Delete}), Prices
}
