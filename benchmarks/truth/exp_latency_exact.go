package main

import (
	"fmt"
	"math"
	"slices"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

const latencyExactText = "The paper's table of compatibility prints accuracies with FlashAttention: 93.5 % dense " +
	"and 92.7 % with its masks at 75 % on SST-2, 81.8 % and 80.3 % at 80 % on ImageNet. What can be checked of it " +
	"is whether a tiled kernel computes the same function as attention written out, with a mask and without, for " +
	"scores of any size. Below, the largest difference of any number of the output: values are normal, 64 numbers a " +
	"head; the reference computes in float64 from the same inputs. The bound is what rounding in float32 allows at " +
	"worst, mostly that of the scores before exp."

var latencyExactColumns = rig.Table[*record]{
	text("mask", "mask"), value("largest score", "score", "%.1f"), value("tiled and plain", "apart", "%.1e"),
	value("tiled and float64", "tiled", "%.1e"), value("plain and float64", "plain", "%.1e"),
	value("bound", "bound", "%.1e"),
}

// latencyExactness compares the tiled kernel, the plain form and float64.
func latencyExactness(n int) (records []record, err error) {
	s := latencyShape{keys: n, dim: 64, heads: 2}
	const block = 16
	for _, mask := range []string{"none", windowMask, clustersMask, scatterMask} {
		j := newLatencyJob(s)
		for i := range latencyMaskList {
			if m := &latencyMaskList[i]; m.name == mask {
				j = m.masked(j, block, support.Budget(.75, 0, support.Blocks(n, block), false))
			}
		}
		largest, absolute := scoreSizes(&j)
		for _, size := range []float64{10, 100, 700} {
			c := j
			c.Scale = float32(size / largest)
			records = append(records, exactnessOf(&c, mask, size, absolute*size/largest))
		}
	}
	return records, nil
}

// scoreSizes returns the largest |q·k| and the largest Σ|q||k|, without the scale.
func scoreSizes(j *kern.Job) (largest, absolute float64) {
	for h := range j.Heads {
		q, k := j.Q.Columns(h*j.Dim, (h+1)*j.Dim), j.K.Columns(h*j.Dim, (h+1)*j.Dim)
		for i := range q.Rows {
			for t := range k.Rows {
				sum, abs := 0.0, 0.0
				for c, x := range q.Row(i) {
					p := float64(x) * float64(k.Row(t)[c])
					sum, abs = sum+p, abs+math.Abs(p)
				}
				largest, absolute = max(largest, math.Abs(sum)), max(absolute, abs)
			}
		}
	}
	return largest, absolute
}

func exactnessOf(j *kern.Job, mask string, size, absolute float64) record {
	out := func() mat.Matrix { return mat.Of(j.Out.Rows, j.Out.Cols, make([]float32, len(j.Out.Data))) }
	tiled, plain := *j, *j
	tiled.Out, plain.Out = out(), out()
	new(kern.Scratch).Attend([]kern.Job{tiled}, 1)
	new(plainAttention).attend(&plain, plainTile, func(h, i int) []int32 { return readBy(j, h, i) })
	v := map[string]float64{"score": size, "bound": roundingBound(j, absolute)}
	want := make([]float64, j.Dim)
	for h := range j.Heads {
		for i := range j.Q.Rows {
			referenceRow(want, j, h, i)
			a, b := tiled.Out.Row(i)[h*j.Dim:], plain.Out.Row(i)[h*j.Dim:]
			for c, x := range want {
				v["apart"] = max(v["apart"], math.Abs(float64(a[c])-float64(b[c])))
				v["tiled"] = max(v["tiled"], math.Abs(float64(a[c])-x))
				v["plain"] = max(v["plain"], math.Abs(float64(b[c])-x))
			}
		}
	}
	return record{Text: map[string]string{"part": "exactness", "mask": mask}, Values: v}
}

// readBy lists the keys that a query reads.
func readBy(j *kern.Job, head, query int) (keys []int32) {
	if len(j.Layouts) > 0 {
		return j.Layouts[head].AppendKeys(nil, query, j.K.Rows, false)
	}
	for k := range j.K.Rows {
		keys = append(keys, int32(k))
	}
	return keys
}

// referenceRow sets dst to a row of the job in float64.
func referenceRow(dst []float64, j *kern.Job, head, query int) {
	keys := readBy(j, head, query)
	weights, sum := make([]float64, len(keys)), 0.0
	for t, k := range keys {
		for c, x := range j.Q.Row(query)[head*j.Dim : (head+1)*j.Dim] {
			weights[t] += float64(x) * float64(j.K.Row(int(k))[head*j.Dim+c])
		}
		weights[t] *= float64(j.Scale)
	}
	top := slices.Max(weights)
	clear(dst)
	for t, k := range keys {
		w := math.Exp(weights[t] - top)
		sum += w
		for c := range dst {
			dst[c] += w * float64(j.V.Row(int(k))[head*j.Dim+c])
		}
	}
	for c := range dst {
		dst[c] /= sum
	}
}

// roundingBound is how far a number of the output may be from float64. A score
// is a sum of Dim products, wrong by Dim·2⁻²⁴ of Σ|q||k|·Scale (absolute), and
// once more by that for its scale; a weight is wrong by e to that, by what exp
// and the sums of n terms round, and is divided by a sum that is wrong as much.
func roundingBound(j *kern.Job, absolute float64) float64 {
	const u = 1. / (1 << 24)
	score, n := (float64(j.Dim)+2)*u*absolute, float64(j.K.Rows)
	weight := math.Expm1(score) + 1e-6*(32+n/500) + n*u
	longest := 0.0
	for i := range j.V.Rows {
		for _, x := range j.V.Row(i) {
			longest = max(longest, math.Abs(float64(x)))
		}
	}
	return 2 * longest * weight / max(1-weight, .5)
}

func latencyExactVerdict(records []record) string {
	if len(records) == 0 {
		return "Nothing is compared yet."
	}
	beyond, widest := 0, 0.0
	for _, r := range records {
		v := r.Values
		if max(v["tiled"], v["plain"]) > v["bound"] {
			beyond++
		}
		widest = max(widest, v["tiled"]/v["plain"])
	}
	word := "so a mask's loss of accuracy is the mask's, not the kernel's, and any accuracy may be measured with either"
	if beyond > 0 {
		word = "which is wrong"
	}
	var small []record
	for _, r := range records {
		if r.Values["score"] == 10 {
			small = append(small, r)
		}
	}
	return fmt.Sprintf("Tiled and plain attention are within %.1e of each other for scores up to 10 and within %.1e "+
		"up to %.0f; %d of %d lines are beyond the bound, %s. Both lie up to %.1e from float64, which scores "+
		"rounded to float32 explain; the tiled kernel at most %.1f times as far as the plain form.",
		slices.Max(valuesOf(small, "apart")), slices.Max(valuesOf(records, "apart")),
		slices.Max(valuesOf(records, "score")), beyond, len(records), word,
		slices.Max(valuesOf(records, "tiled")), widest)
}
