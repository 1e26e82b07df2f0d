package record

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// goodPlan returns a plan with its only segment and list.
func goodPlan(t testing.TB) (p *Plan, segment, names []byte, lanes []Lane) {
	t.Helper()
	list := []string{"a b", "é\n", `"`}
	names, err := AppendNames(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	lanes = []Lane{
		{Number: 3, Items: 2, Frames: 2, Bytes: 7, Folder: "d/<x>", Input: LaneInput{Format: "pcd", Path: "d",
			List: PartHash(names)}, Common: []LaneFile{{"../times.txt", 4, 5, "", ""}},
			Files: []LaneFile{{"0.pcd", 3, 9, PartHash(nil), ""}, {"1.pcd", 4, 9, "", "d41d8-2"}}},
		{Number: 0, First: 2, Items: 3, Input: LaneInput{Format: "pcd", Path: "d", Own: false, Sequence: "s"},
			Files: []LaneFile{{Path: "2.pcd", Size: 3, ModTime: 9}}, At: [][]int{{0}, {}, {0, 0}}},
	}
	for i := range lanes {
		if segment, err = AppendLane(segment, &lanes[i]); err != nil {
			t.Fatal(err)
		}
	}
	part := func(data []byte) PlanPart { return PlanPart{PartHash(data), int64(len(data))} }
	p = &Plan{Format: FormatVersion, Name: "p", Hash: PartHash([]byte("x")), Created: time.Unix(1, 2).UTC(),
		Roots: []string{"/a"}, Source: map[string]string{"format": "pcd"}, Identity: ByModTime, Lanes: 2, Items: 5,
		Frames: 2, Bytes: 7, Files: 4, Lists: []PlanPart{part(names)},
		Segments: []PlanSegment{{PlanPart: part(segment), Numbers: []int32{3, 0}, Items: []int64{2, 3}}}}
	return p, segment, names, lanes
}

func TestPlanRoundTrip(t *testing.T) {
	p, segment, names, lanes := goodPlan(t)
	got, err := ParsePlan(PlanName("p"), Encode(p))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Error(diff)
	}
	back, err := ParseLanes("s", segment, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lanes, back); diff != "" {
		t.Error(diff)
	}
	for i := range lanes {
		one, err := ParseLane("s", segment, p, 0, i)
		if err != nil || cmp.Diff(&lanes[i], one) != "" {
			t.Errorf("lane at %d: %v, %v", i, one, err)
		}
	}
	list, err := ParseNames("l", names, p.Lists[0])
	if want := []string{"a b", "é\n", `"`}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%q, %v", list, err)
	}
	if _, place, items := p.Lane(0); place != 1 || items != 3 {
		t.Errorf("lane 0 is at %d with %d items", place, items)
	}
	if segment, _, _ := p.Lane(1); segment != -1 {
		t.Error("there is a lane 1")
	}
}

// Lanes of other numbers are the same if their items are.
func TestLaneIdentity(t *testing.T) {
	_, _, _, lanes := goodPlan(t)
	same := lanes[0]
	same.Number = 77
	a, _ := lanes[0].Identity()
	b, _ := same.Identity()
	same.Files = slices.Clone(same.Files)
	same.Files[1].ModTime++
	if c, _ := same.Identity(); a != b || a == c {
		t.Error("the number counts, or a time does not")
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(p *Plan){
		"no name":           func(p *Plan) { p.Name = "" },
		"no hash":           func(p *Plan) { p.Hash = "x" },
		"another identity":  func(p *Plan) { p.Identity = "name" },
		"no root":           func(p *Plan) { p.Roots = nil },
		"negative items":    func(p *Plan) { p.Items = -5 },
		"too few lanes":     func(p *Plan) { p.Lanes = 1 },
		"too many items":    func(p *Plan) { p.Items++ },
		"a lane twice":      func(p *Plan) { p.Segments[0].Numbers[1] = 3 },
		"a negative lane":   func(p *Plan) { p.Segments[0].Numbers[1] = -3 },
		"no items":          func(p *Plan) { p.Segments[0].Items = []int64{5, 0} },
		"items overflow":    func(p *Plan) { p.Segments[0].Items = []int64{1 << 62, 1 << 62} },
		"counts are short":  func(p *Plan) { p.Segments[0].Items = []int64{5} },
		"an empty segment":  func(p *Plan) { p.Segments[0].Bytes = 0 },
		"a segment outside": func(p *Plan) { p.Segments[0].SHA256 = "../../x" },
		"a list outside":    func(p *Plan) { p.Lists[0].SHA256 = "../../x" },
		"another place":     func(p *Plan) { p.Name = "q" },
	} {
		p, _, _, _ := goodPlan(t)
		change(p)
		if _, err := ParsePlan(PlanName("p"), Encode(p)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLanesThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(l *Lane){
		"another number":     func(l *Lane) { l.Number = 4 },
		"other items":        func(l *Lane) { l.Items = 1 },
		"another root":       func(l *Lane) { l.Root = 1 },
		"a negative root":    func(l *Lane) { l.Root = -1 },
		"negative first":     func(l *Lane) { l.First = -1 },
		"first overflows":    func(l *Lane) { l.First = 1<<63 - 1 },
		"a file is missing":  func(l *Lane) { l.Files = l.Files[:1] },
		"an item is nowhere": func(l *Lane) { l.At = [][]int{{0}} },
		"a file that is not": func(l *Lane) { l.At = [][]int{{0}, {2}} },
		"a list outside":     func(l *Lane) { l.Input.List = "../x" },
		"own, not from 0":    func(l *Lane) { l.Input.Own, l.First = true, 1 },
		"own, without files": func(l *Lane) { l.Input.Own, l.Files = true, nil },
	} {
		p, _, _, lanes := goodPlan(t)
		change(&lanes[0])
		var segment []byte
		for i := range lanes {
			segment, _ = AppendLane(segment, &lanes[i])
		}
		p.Segments[0].PlanPart = PlanPart{PartHash(segment), int64(len(segment))}
		if _, err := ParseLanes("s", segment, p, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	p, segment, names, _ := goodPlan(t)
	for name, data := range map[string][]byte{"cut": segment[:len(segment)-1], "empty": nil,
		"changed": bytes.Replace(segment, []byte("0.pcd"), []byte("1.pcd"), 1)} {
		if _, err := ParseLanes("s", data, p, 0); err == nil || !strings.Contains(err.Error(), "s is damaged") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := ParseLane("s", data, p, 0, 0); err == nil {
			t.Errorf("%s: a lane of it passes", name)
		}
	}
	if _, err := ParseNames("l", names[1:], p.Lists[0]); err == nil {
		t.Error("a changed list passes")
	}
}

func TestNamesOfParts(t *testing.T) {
	hash := PartHash(nil)
	if got, ok := IsPartName(PartName(hash)); !ok || got != hash {
		t.Errorf("%q, %t", got, ok)
	}
	for _, name := range []string{"", hash, PlansFolder + "/" + hash, PlansFolder + "/x.jsonl",
		PlansFolder + "/a/" + hash +
			".jsonl", ConfigsFolder + "/" + hash + ".jsonl"} {
		if _, ok := IsPartName(name); ok {
			t.Errorf("%q is a part", name)
		}
	}
}

// No bytes crash the readers of plans; what passes is written as it was read.
func FuzzPlan(f *testing.F) {
	p, segment, _, _ := goodPlan(f)
	f.Add(Encode(p), segment)
	f.Add([]byte(`{"format":2,"name":"p"}`), []byte("{}\n"))
	f.Fuzz(func(t *testing.T, head, lines []byte) {
		if p, err := ParsePlan(PlanName("p"), head); err == nil {
			if again, err := ParsePlan(PlanName("p"), Encode(p)); err != nil || cmp.Diff(p, again) != "" {
				t.Fatalf("%v, %v: %v", p, again, err)
			}
		}
		p := *p
		s := p.Segments[0]
		s.PlanPart = PlanPart{PartHash(lines), int64(len(lines))}
		p.Segments = []PlanSegment{s}
		lanes, err := ParseLanes("s", lines, &p, 0)
		if err != nil {
			return
		}
		for i := range lanes {
			for k := range lanes[i].Items {
				lanes[i].FilesOf(k)
			}
		}
		if _, err := ParseLane("s", lines, &p, 0, 1); err != nil {
			t.Fatalf("a lane alone: %v", err)
		}
	})
}
