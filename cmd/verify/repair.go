package verify

import (
	"errors"
	"fmt"
	"strings"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ingest"
	"entropipe/sinks"
	"entropipe/sinks/read"
)

// repairFlags say whether, and how, verify mends an output.
type repairFlags struct {
	Repair  bool     `group:"Repair"`
	Yes     bool     `group:"Repair"`
	Brokers []string `default:"127.0.0.1:9092" placeholder:"HOST:PORT" group:"Repair"`
	Group   string   `group:"Repair"`
	Offline bool     `group:"Repair"`

	Security command.Security `embed:"" group:"Brokers"`
}

// Check returns the first mistake of the flags, as a mistake.Usage.
func (f *repairFlags) Check() error {
	switch {
	case f.Yes && !f.Repair:
		return mistake.NewUsage(errors.New("--yes needs --repair"))
	case f.Offline && !f.Repair:
		return mistake.NewUsage(errors.New("--offline needs --repair"))
	case f.Repair && !f.Offline:
		return command.CheckBrokers(&f.Brokers)
	}
	return nil
}

// repairer mends an output.
type repairer struct {
	*repairFlags
	store    sinks.Store
	group    string
	security ingest.Security
}

// open prepares a repair. Where files will be moved it asks for writers at once:
// nobody should wait for hours to learn that some are there.
func (f *repairFlags) open(e *command.Env, store sinks.Store) (r *repairer, err error) {
	r = &repairer{repairFlags: f, store: store, group: f.Group}
	if r.group == "" {
		if found, err := read.Identify(e.Ctx, store); err == nil { // otherwise the plan says why nothing can be mended
			r.group = sinks.DefaultGroup(found.Store)
		}
	}
	if f.Offline || r.group == "" {
		return r, nil
	}
	if r.security, err = f.Security.Open(e.Log); err != nil {
		return nil, err
	}
	if f.Yes {
		return r, r.quiet(e)
	}
	return r, nil
}

// quiet returns nil if no process is a member of the output's group.
func (r *repairer) quiet(e *command.Env) error {
	members, err := ingest.Members(e.Ctx, r.Brokers, r.security, r.group)
	if err != nil {
		return fmt.Errorf("whether a process writes to this output cannot be asked, so nothing was moved: %w; where "+
			"no broker is there any more, and no process writes to the folder, say --offline", err)
	}
	if len(members) == 0 {
		return nil
	}
	var names []string
	for _, m := range members[:min(len(members), 4)] {
		names = append(names, fmt.Sprintf("%s at %s", m.ClientID, strings.TrimPrefix(m.Host, "/")))
	}
	return fmt.Errorf("group %s has %d members (%s), which may write to this output, so nothing was moved: stop "+
		"them, and begin again; of one that died elsewhere wait for the session", r.group, len(members),
		strings.Join(names, ", "))
}

// repair does what the plan says, or adds to it what speaks against that.
func (r *repairer) repair(e *command.Env, plan *read.Repair) error {
	if plan.Files() == 0 {
		return nil
	}
	if r.Offline {
		plan.Writers = "no broker was asked: whether a process writes to this output, and whether the topics still " +
			"have the records, is for you to know"
	} else if err := r.ask(e, plan); err != nil {
		if !r.Yes {
			plan.Writers = "--yes would be refused now: " + err.Error()
			return nil
		}
		return err
	}
	if !r.Yes {
		return nil
	}
	return plan.Apply(e.Ctx, r.store)
}

// ask looks whether the records can be read again, and then whether the group is
// still empty.
func (r *repairer) ask(e *command.Env, plan *read.Repair) error {
	topics := map[string]*ingest.Topic{} // nil: there is none
	for i := len(plan.Steps) - 1; i >= 0; i-- {
		s := plan.Steps[i]
		if s.End <= s.Start {
			continue
		}
		topic, known := topics[s.Topic]
		if !known {
			found, err := ingest.Describe(e.Ctx, r.Brokers, r.security, s.Topic)
			switch {
			case err == nil:
				topic = &found
			case !errors.Is(err, ingest.ErrNoTopic):
				return fmt.Errorf("whether the records of topic %s are still there cannot be asked: %w; where no "+
					"broker is there any more, say --offline", s.Topic, err)
			}
			topics[s.Topic] = topic
		}
		if gone := missing(topic, &s); gone != "" {
			plan.Leave(&s, gone+", so run could not write these records again, and their rows would be gone from "+
				"the tables; with --offline the files are moved all the same")
		}
	}
	if err := r.quiet(e); err != nil {
		return err
	}
	plan.Writers = fmt.Sprintf("group %s has no members", r.group)
	return nil
}

// missing says which of the records that a step wants to have written again are
// not in the topic any more; empty: all are there.
func missing(topic *ingest.Topic, s *read.RepairStep) string {
	if topic == nil {
		return fmt.Sprintf("topic %s is gone", s.Topic)
	}
	if !s.Continues(topic.ID) {
		return fmt.Sprintf("topic %s was deleted and created again: its records are others", s.Topic)
	}
	for _, p := range topic.Partitions {
		switch {
		case p.ID != s.Partition:
		case p.Start > s.Start:
			return fmt.Sprintf("the topic begins at offset %d by now", p.Start)
		case p.End < s.End:
			return fmt.Sprintf("the topic ends at offset %d: it is not the one that was read", p.End)
		default:
			return ""
		}
	}
	return fmt.Sprintf("topic %s has no partition %d any more", s.Topic, s.Partition)
}
