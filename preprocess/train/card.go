package train

import (
	"fmt"

	"entropipe/models"
)

// Best returns the judgement of the model that Model returns, the zero value before
// the first judgement.
func (t *Trainer) Best() Judgement { return t.best.judgement }

// Card returns the card of the model that Model returns.
func (t *Trainer) Card() models.Card {
	c, j := &t.cfg, t.best.judgement
	learn, judged := models.CardData{Name: "learned", Use: "training"},
		models.CardData{Name: "held out", Use: "judging"}
	for k, frames := range [][]Frame{t.data.Learn, t.data.Judge} {
		to := []*models.CardData{&learn, &judged}[k]
		for _, f := range frames {
			to.Frames++
			to.Points += int64(f.Cloud.Len())
		}
	}
	card := models.Card{
		Title: fmt.Sprintf("EntropyNet, %s, for %s", c.Mode, problemNames(c.Ops)),
		Data:  []models.CardData{learn, judged},
	}
	metric := func(name string, value float64, unit string) {
		card.Metrics = append(card.Metrics, models.Metric{Name: name, On: judged.Name, Value: value, Unit: unit})
	}
	metric("G of the frames (upper bound of the entropy)", j.Before, "nats a point")
	metric("G of the moved frames", j.After, "nats a point")
	if c.Mode == models.Denoise {
		card.Purpose = "Moves noisy points towards where they were, so that the maxima found are those of the clean " +
			"frame."
		metric("F1 of the maxima of noisy frames", j.Raw, "")
		metric("F1 of the maxima of moved frames", j.F1, "")
		metric("the same, within a deviation of the noise", j.Tolerant, "")
		card.Limits = []string{
			fmt.Sprintf("Results are approximate and carry no bound. The noise was normal with deviation %.6g, and "+
				"%.6g of the points were outliers within %.6g deviations.", c.Noise.Sigma,
				c.Noise.Outliers, c.Noise.Reach),
		}
	} else {
		card.Purpose = "Moves points so that a frame has less range-partition entropy, which output-sensitive " +
			"algorithms pay for; the error of each answer is measured, not estimated."
		metric("mean error of an answer", j.Error, "diagonals of the frame")
		metric("largest error of an answer", j.Worst, "diagonals of the frame")
		card.Limits = []string{"The network costs far more than the exact operators of this program: it is here to " +
			"compare with, not to save time."}
	}
	card.Limits = append(card.Limits,
		fmt.Sprintf("Made for frames like those it has seen, of dataset %q and sensor %q.",
			t.data.Dataset, t.data.Sensor),
		fmt.Sprintf("At most %d points of a frame were used.", framePoints))
	return card
}
