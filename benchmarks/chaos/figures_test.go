//go:build chaos

package chaos

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/sinks/s3/s3test"
)

var results = flag.String("chaos.results", "",
	"file of JSON lines to which the figures of a run on s3, or of a compaction, are added")

// figures are those of a run whose output is in a bucket.
type figures struct {
	Server        string               `json:"server"`
	ServerVersion string               `json:"server_version"`
	Broker        string               `json:"broker"`
	Seed          uint64               `json:"seed"`
	Seconds       float64              `json:"seconds"`
	Records       int64                `json:"records"`
	Acknowledged  int                  `json:"acknowledged"`
	Left          int64                `json:"left_to_last_run"`
	Kills         int                  `json:"kills"`
	Freezes       int                  `json:"freezes"`
	Stops         int                  `json:"stops"`
	BrokerKills   int                  `json:"broker_kills"`
	ServerKills   int                  `json:"server_kills"`
	Refused       int                  `json:"starts_refused"`
	Unwritten     int                  `json:"stops_unwritten"`
	Assignments   int                  `json:"assignments"`
	Commits       int                  `json:"commits"`
	Requests      map[s3test.Kind]int  `json:"requests"`
	Faults        map[s3test.Fault]int `json:"faults"`
	Missing       int64                `json:"missing"`
	Doubled       int64                `json:"doubled"`
	Stray         int64                `json:"stray"`
	Wrong         int64                `json:"wrong"`
	Torn          int64                `json:"torn"`
	Staged        int                  `json:"left_in_staging"`
	PerMille      int                  `json:"faults_begun_per_mille"`
}

// report prints the figures of a run whose output is in a bucket, and keeps them.
func (r *run) report(want Expected, v *Verdict) {
	left, err := staged(r.out)
	if err != nil {
		r.t.Fatal(err)
	}
	f := figures{Server: r.bucket.server.kind, ServerVersion: r.bucket.server.version, Broker: r.broker.Kind,
		Seed: *seed, Seconds: time.Since(r.begun).Seconds(), Records: v.Records, Acknowledged: len(want.Acked),
		Left: r.left, Kills: r.kills, Freezes: r.freezes, Stops: r.stops, BrokerKills: r.brokerKills,
		ServerKills: r.serverKills, Refused: r.refused, Unwritten: r.unwritten, Assignments: r.assignments(),
		Commits: r.commits(), Requests: r.bucket.proxy.Requests(), Faults: r.bucket.proxy.Faults(),
		Missing: v.Missing, Doubled: v.Doubled, Stray: v.Stray, Wrong: v.Wrong, Torn: v.Torn, Staged: left,
		PerMille: *faults}
	all := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(f.Faults)) {
		all += f.Faults[kind]
		kinds = append(kinds, fmt.Sprintf("%d %s", f.Faults[kind], kind))
	}
	fmt.Printf("chaos on %s %s: server kills %d, %d requests spoilt (%s), starts refused %d, stops unwritten %d, "+
		"left in "+
		"staging %d\n", f.Server, f.ServerVersion, f.ServerKills, all, strings.Join(kinds, "; "),
		f.Refused, f.Unwritten,
		f.Staged)
	if *faults > 0 && all == 0 {
		r.t.Error("the proxy has spoilt nothing")
	}
	if *results == "" {
		return
	}
	j, err := rig.ReadJournal[figures]("chaos s3", *results)
	if err == nil {
		err = j.Add(f)
	}
	if err != nil {
		r.t.Error(err)
	}
}
