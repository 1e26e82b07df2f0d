package produce

import (
	"errors"
	"fmt"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/cmd/produce/source"
)

type produceTokens struct {
	source.Tokens `embed:""`
	producerFlags `embed:""`
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *produceTokens) Check() error {
	switch {
	case c.Key != "sequence":
		return mistake.NewUsage(fmt.Errorf("--key %s: packs of texts have no key; they go to the partitions in turn",
			c.Key))
	case c.Resume != "":
		return mistake.NewUsage(errors.New("--resume continues clouds and drawings; texts have no order to continue"))
	case c.Stage != "off":
		return mistake.NewUsage(fmt.Errorf("--stage %s: only clouds of points are pruned", c.Stage))
	}
	return errors.Join(c.producerFlags.Check(), c.Tokens.Check())
}

// Run checks the flags and runs the command.
func (c *produceTokens) Run(e *command.Env) error {
	if err := errors.Join(c.Check(), c.checkSources(&c.Tokens)); err != nil {
		return err
	}
	defer c.Bucket.Reading(e.Ctx, readAhead)()
	c.Rate = c.Rate.Untimed()
	src, err := c.Tokens.Open(source.Options{Rate: c.Rate, Log: e.Log})
	if err != nil {
		return err
	}
	return c.produceAs(e, src, "sequences", "tokens")
}
