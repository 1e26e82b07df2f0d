// Package transformer holds the commands freeze, train-lm and train-vit: they choose the
// attention blocks that a transformer reads, and train small transformers. Packages
// sparse/freeze and sparse/train do the work.
//
// A calibration is the text, ids or images that a model reads while its attention is
// measured. A bucket is a sequence length that a mask is made for. A certificate is what
// was measured of one head under its mask.
package transformer
