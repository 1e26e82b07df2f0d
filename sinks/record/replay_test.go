package record

import (
	"strings"
	"testing"
)

func TestReplayNames(t *testing.T) {
	id := strings.Repeat("0a", 16)
	for name, want := range map[string]int{ReplayName(id): 0, ReplayedName(id, 1): 1, ReplayedName(id, 12): 12,
		ReplaysFolder + "/" + id[1:] + ".json": -1, ReplaysFolder + "/" + id + ".0.json": -1,
		ReplaysFolder + "/" + id + ".01.json": -1, ReplaysFolder + "/" + id + "..json": -1,
		ReplaysFolder + "/" + strings.ToUpper(id) + ".json": -1, CommitsFolder + "/" + id + ".json": -1,
		ReplaysFolder + "/" + id + ".json.new": -1, ReplaysFolder + "/a/" + id + ".json": -1} {
		got, n, ok := ParseReplayName(name)
		if ok != (want >= 0) || ok && (n != want || got != id) {
			t.Errorf("%s: %q, %d, %v; want %d", name, got, n, ok, want)
		}
	}
}

// Records of replays with impossible content are damaged.
func TestDamagedReplays(t *testing.T) {
	sent := SentMessage{Folder: "points", Topic: "points", Offset: 7, ToOffset: 9}
	list := Replayed{Format: FormatVersion, To: "9", Folder: "x-9", Sent: []SentMessage{sent}}
	if r, err := ParseReplayed("n", Encode(list)); err != nil || r.Sent[0] != sent {
		t.Error(r, err)
	}
	for name, change := range map[string]func(*Replayed){
		"no topic":          func(r *Replayed) { r.To = "" },
		"another folder":    func(r *Replayed) { r.Folder = "9" },
		"a topic id":        func(r *Replayed) { r.TopicID = "?" },
		"a negative offset": func(r *Replayed) { r.Sent = []SentMessage{sent}; r.Sent[0].ToOffset = -1 },
		"a source folder":   func(r *Replayed) { r.Sent = []SentMessage{sent}; r.Sent[0].Folder = "" },
	} {
		spoilt := list
		change(&spoilt)
		if _, err := ParseReplayed("n", Encode(spoilt)); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	for name, r := range map[string]Replay{
		"no topic":    {Format: FormatVersion},
		"a partition": {Format: FormatVersion, To: "t", Starts: map[string]int64{"x": 0}},
		"a start":     {Format: FormatVersion, To: "t", Starts: map[string]int64{"0": -1}},
		"a format":    {Format: FormatVersion + 1, To: "t"},
	} {
		if _, err := ParseReplay("n", Encode(r)); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if r, err := ParseReplay("n", Encode(Replay{Format: FormatVersion, To: "t",
		Starts: map[string]int64{"3": 4}})); err != nil || r.Starts["3"] != 4 {
		t.Error(r, err)
	}
}
