// Package broker is the command broker: an embedded Kafka broker of a single node,
// without replication or security, for laptops and tests. Package ingest/broker holds the
// broker itself.
package broker

import (
	"errors"
	"fmt"

	"entropipe/cmd/command"
	"entropipe/cmd/config/value"
	"entropipe/ingest/broker"
)

// Command is the command broker: its flags and arguments.
type Command struct {
	Listen          string     `default:"127.0.0.1:9092" placeholder:"HOST:PORT"`
	Data            string     `type:"path" placeholder:"DIR"`
	Partitions      int        `default:"4"`
	MaxMessageBytes value.Size `default:"16MiB"`
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	b, err := broker.Start(broker.Config{Listen: c.Listen, Dir: c.Data, Partitions: c.Partitions,
		MaxMessageBytes: int64(c.MaxMessageBytes), Log: e.Log})
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Fprintln(e.Stdout, b.Addr())
	e.Log.Info("broker ready", "address", b.Addr(), "data", b.Dir())
	<-e.Ctx.Done()
	return nil
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Command) Check() error {
	return errors.Join(command.CheckListenOn(c.Listen),
		command.CheckAmount("partitions", c.Partitions, 1, command.MaxPartitions),
		command.CheckAmount("max-message-bytes", c.MaxMessageBytes, 1<<10, 1<<30))
}
