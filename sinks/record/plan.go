package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// A plan says which items of an archive are which records of an output. The records of
// a plan are like those of a topic that has the plan's name: a lane is a run of
// consecutive items of one input and is a partition, and the place of an item in its
// lane is an offset.
//
//	topics/<plan>/plan.json   Plan: which lanes there are; created last and exclusively
//	plans/<sha256>.jsonl      parts: a Lane a line, or the names of an input's files
//	plans/order/<n>.json      PlanPlace: plans that are worked on; no two of them share a file
//
// A part is named after its bytes, so that planners that race write the same files and
// one that dies leaves nothing that another could take for something else.
const (
	PlanFile    = "plan.json"
	PlansFolder = CommitsFolder + "/plans"
	partSuffix  = ".jsonl"
)

// Identities of files: what a file must keep so that it counts as unchanged.
const (
	ByModTime = "mtime"  // size and time of the last change
	BySHA256  = "sha256" // size and content
	ByETag    = "etag"   // size and ETag of an object
)

// Plan is the head of a plan.
type Plan struct {
	Format   int               `json:"format"`
	Name     string            `json:"name"`
	Hash     string            `json:"hash"` // SHA-256 of the source settings and of all lanes, without the roots
	Created  time.Time         `json:"created"`
	Writer   string            `json:"writer,omitempty"` // version of the program
	Roots    []string          `json:"roots"`            // folders that the paths of lanes begin at, absolute
	Source   map[string]string `json:"source"`           // format and the settings that decide messages
	Identity string            `json:"identity"`         // ByModTime, BySHA256 or ByETag
	Lanes    int               `json:"lanes"`
	Items    int64             `json:"items"`
	Frames   int64             `json:"frames"`
	Files    int64             `json:"files"` // files of the lanes, each as often as lanes need it
	Bytes    int64             `json:"bytes"`
	Segments []PlanSegment     `json:"segments"`
	Lists    []PlanPart        `json:"lists,omitempty"` // names of the files of inputs that have several lanes
}

// PlanPart is a file of a plan beside its head.
type PlanPart struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// PlanSegment is a part with lanes, in the order of their lines.
type PlanSegment struct {
	PlanPart
	Numbers []int32 `json:"lanes"` // numbers of the lanes
	Items   []int64 `json:"items"` // items of each lane, which say when the lane is done
}

// Lane is a run of consecutive items of one input.
type Lane struct {
	Number int32      `json:"lane"`
	Root   int        `json:"root"`  // index of the root that paths begin at
	Input  LaneInput  `json:"input"` //
	First  int64      `json:"first"` // position of the first item within the input
	Items  int64      `json:"items"`
	Frames int64      `json:"frames"`           // an estimate where items have different numbers of frames
	Bytes  int64      `json:"bytes"`            // bytes of the files; of a file with many items the lane's share
	Common []LaneFile `json:"common,omitempty"` // files that every item depends on, below the root
	Folder string     `json:"folder,omitempty"` // folder of Files, below the root
	Files  []LaneFile `json:"files,omitempty"`  // files of the items, below Folder; none: items are in Common
	At     [][]int    `json:"at,omitempty"`     // indices of the files of each item; none: item i is in Files[i]
}

// LaneInput names an input. Its files, if it has a list of them, are Files, or those of
// the lane, or those of a list.
type LaneInput struct {
	Format   string   `json:"format"`
	Path     string   `json:"path"` // below the root
	Sequence string   `json:"sequence,omitempty"`
	Files    []string `json:"files,omitempty"` // names within Path
	Own      bool     `json:"own,omitempty"`   // the input's files are the names of Lane.Files
	List     string   `json:"list,omitempty"`  // SHA-256 of the part with the names of the files
}

// LaneFile is a file as it was when it was planned. Its JSON form is an array: path,
// size, time, the checksum if there is one, and after it the ETag.
type LaneFile struct {
	Path    string
	Size    int64
	ModTime int64  // nanoseconds since 1970; 0: not compared
	SHA256  string // empty: not compared
	ETag    string // of an object in a bucket; empty: not compared
}

// MarshalJSON implements json.Marshaler.
func (f LaneFile) MarshalJSON() ([]byte, error) {
	if f.ETag != "" {
		return json.Marshal([]any{f.Path, f.Size, f.ModTime, f.SHA256, f.ETag})
	}
	if f.SHA256 == "" {
		return json.Marshal([]any{f.Path, f.Size, f.ModTime})
	}
	return json.Marshal([]any{f.Path, f.Size, f.ModTime, f.SHA256})
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *LaneFile) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) < 3 || len(parts) > 5 {
		return fmt.Errorf("a file has %d parts, not 3 to 5", len(parts))
	}
	into := []any{&f.Path, &f.Size, &f.ModTime, &f.SHA256, &f.ETag}
	for i, part := range parts {
		if err := json.Unmarshal(part, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// PlanName returns the path of the head of a plan.
func PlanName(plan string) string { return TopicFolder(plan) + "/" + PlanFile }

// PartName returns the path of the part of a plan with this SHA-256.
func PartName(hash string) string { return PlansFolder + "/" + hash + partSuffix }

// IsPartName tells whether name is the path of a part of a plan, and returns its hash.
func IsPartName(name string) (hash string, ok bool) {
	hash, ok = strings.CutSuffix(path.Base(name), partSuffix)
	return hash, ok && path.Dir(name) == PlansFolder && IsHash(hash)
}

// PartHash returns the SHA-256 of a part, in hex.
func PartHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ParsePlan decodes and checks the head of a plan. The error is a *DamagedError or a
// *FormatError.
func ParsePlan(name string, data []byte) (*Plan, error) {
	p := new(Plan)
	if err := Parse(name, data, p); err != nil {
		return nil, err
	}
	if problem := p.problem(); problem != "" {
		return nil, &DamagedError{name, errors.New(problem)}
	}
	if want := PlanName(p.Name); name != want {
		return nil, &DamagedError{name, fmt.Errorf("what it says belongs into %s", want)}
	}
	return p, nil
}

func (p *Plan) problem() string {
	switch {
	case p.Name == "" || !IsHash(p.Hash):
		return fmt.Sprintf("name %q, hash %q", p.Name, p.Hash)
	case p.Identity != ByModTime && p.Identity != BySHA256 && p.Identity != ByETag:
		return fmt.Sprintf("identity %q", p.Identity)
	case len(p.Roots) == 0:
		return "it has no root"
	case p.Lanes < 0 || p.Items < 0 || p.Frames < 0 || p.Bytes < 0 || p.Files < 0:
		return fmt.Sprintf("%d lanes, %d items, %d frames, %d bytes, %d files", p.Lanes, p.Items, p.Frames, p.Bytes,
			p.Files)
	}
	seen, items := make(map[int32]bool), int64(0)
	for i := range p.Segments {
		s := &p.Segments[i]
		if !s.valid() || len(s.Numbers) == 0 || len(s.Items) != len(s.Numbers) {
			return fmt.Sprintf("segment %d has %d bytes, %d lanes and %d counts of items", i, s.Bytes, len(s.Numbers),
				len(s.Items))
		}
		for k, n := range s.Numbers {
			if n < 0 || seen[n] || s.Items[k] <= 0 || s.Items[k] > p.Items-items {
				return fmt.Sprintf("lane %d has %d items, or stands there twice", n, s.Items[k])
			}
			seen[n] = true
			items += s.Items[k]
		}
	}
	for _, l := range p.Lists {
		if !l.valid() {
			return fmt.Sprintf("list %q of %d bytes", l.SHA256, l.Bytes)
		}
	}
	if len(seen) != p.Lanes || items != p.Items {
		return fmt.Sprintf("its segments have %d lanes and %d items, not %d and %d", len(seen), items, p.Lanes, p.Items)
	}
	return ""
}

func (p *PlanPart) valid() bool { return IsHash(p.SHA256) && p.Bytes > 0 && p.Bytes <= MaxSize }

// Lane returns the segment of a lane, and the lane's place and items there; -1: the plan
// has no such lane.
func (p *Plan) Lane(number int32) (segment, place int, items int64) {
	for i := range p.Segments {
		if k := slices.Index(p.Segments[i].Numbers, number); k >= 0 {
			return i, k, p.Segments[i].Items[k]
		}
	}
	return -1, -1, 0
}

// ItemsOf returns the items of all lanes by their numbers.
func (p *Plan) ItemsOf() map[int32]int64 {
	items := make(map[int32]int64, p.Lanes)
	for i := range p.Segments {
		for k, n := range p.Segments[i].Numbers {
			items[n] = p.Segments[i].Items[k]
		}
	}
	return items
}

// AppendLane appends the line of a lane to data.
func AppendLane(data []byte, l *Lane) ([]byte, error) { return appendLine(data, l) }

func appendLine(data []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(data)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// ParseLanes decodes and checks the lines of a segment of p. Errors call it name. The
// error is a *DamagedError.
func ParseLanes(name string, data []byte, p *Plan, segment int) ([]Lane, error) {
	s := &p.Segments[segment]
	if err := s.check(data); err != nil {
		return nil, &DamagedError{name, err}
	}
	lanes := make([]Lane, 0, len(s.Numbers))
	for line := range bytes.Lines(data) {
		l, err := p.lane(segment, len(lanes), line)
		if err != nil {
			return nil, &DamagedError{name, err}
		}
		lanes = append(lanes, *l)
	}
	if len(lanes) != len(s.Numbers) {
		return nil, &DamagedError{name, fmt.Errorf("%d lanes of %d", len(lanes), len(s.Numbers))}
	}
	return lanes, nil
}

// ParseLane decodes and checks one line of a segment, as ParseLanes does. The other lines
// are not decoded.
func ParseLane(name string, data []byte, p *Plan, segment, place int) (*Lane, error) {
	err := p.Segments[segment].check(data)
	at := 0
	for line := range bytes.Lines(data) {
		if at++; at <= place || err != nil {
			continue
		}
		l, err := p.lane(segment, place, line)
		if err != nil {
			return nil, &DamagedError{name, err}
		}
		return l, nil
	}
	if err == nil {
		err = fmt.Errorf("%d lines, not more than %d", at, place)
	}
	return nil, &DamagedError{name, err}
}

// lane decodes and checks a line of a segment.
func (p *Plan) lane(segment, place int, line []byte) (*Lane, error) {
	s, l := &p.Segments[segment], new(Lane)
	if err := json.Unmarshal(line, l); err != nil {
		return nil, err
	}
	if place >= len(s.Numbers) || l.Number != s.Numbers[place] || l.Items != s.Items[place] {
		return nil, fmt.Errorf("line %d is lane %d with %d items, which the head does not have there", place+1,
			l.Number, l.Items)
	}
	return l, l.check(len(p.Roots))
}

// check compares the bytes of a part with its entry in the head.
func (p *PlanPart) check(data []byte) error {
	if int64(len(data)) != p.Bytes || PartHash(data) != p.SHA256 {
		return fmt.Errorf("%d bytes with SHA-256 %s, not %d with %s", len(data), PartHash(data), p.Bytes, p.SHA256)
	}
	return nil
}

// check tells what is impossible about a lane.
func (l *Lane) check(roots int) error {
	switch {
	case l.Root < 0 || l.Root >= roots:
		return fmt.Errorf("lane %d is below root %d of %d", l.Number, l.Root, roots)
	case l.First < 0 || l.Items <= 0 || l.First+l.Items < 0 || l.Frames < 0 || l.Bytes < 0:
		return fmt.Errorf("lane %d has items [%d, +%d), %d frames, %d bytes", l.Number, l.First, l.Items, l.Frames,
			l.Bytes)
	case len(l.Files) > 0 && l.At == nil && int64(len(l.Files)) != l.Items:
		return fmt.Errorf("lane %d has %d files for %d items", l.Number, len(l.Files), l.Items)
	case l.At != nil && int64(len(l.At)) != l.Items:
		return fmt.Errorf("lane %d says for %d items where they are, not for %d", l.Number, len(l.At), l.Items)
	case l.Input.List != "" && !IsHash(l.Input.List):
		return fmt.Errorf("lane %d names list %q", l.Number, l.Input.List)
	case l.Input.Own && (len(l.Files) == 0 || l.At != nil || l.First != 0):
		return fmt.Errorf("lane %d has not all files of its input", l.Number)
	}
	for i, at := range l.At {
		for _, k := range at {
			if k < 0 || k >= len(l.Files) {
				return fmt.Errorf("item %d of lane %d is in file %d of %d", i, l.Number, k, len(l.Files))
			}
		}
	}
	return nil
}

// FilesOf returns the indices in Files of the files of an item; none: it is in Common.
func (l *Lane) FilesOf(item int64) []int {
	switch {
	case l.At != nil:
		return l.At[item]
	case len(l.Files) > 0:
		return []int{int(item)}
	}
	return nil
}

// Identity returns what makes a lane the same as one of another plan: a hash of its
// input, range and files, without its number.
func (l *Lane) Identity() ([sha256.Size]byte, error) {
	same := *l
	same.Number = 0
	line, err := appendLine(nil, &same)
	return sha256.Sum256(line), err
}

// AppendNames appends the names of the files of an input to data, a line each.
func AppendNames(data []byte, names []string) ([]byte, error) {
	var err error
	for _, name := range names {
		if data, err = appendLine(data, name); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// ParseNames decodes a part with names. Errors call it name. The error is a *DamagedError.
func ParseNames(name string, data []byte, part PlanPart) ([]string, error) {
	if err := part.check(data); err != nil {
		return nil, &DamagedError{name, err}
	}
	var names []string
	for line := range bytes.Lines(data) {
		var s string
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, &DamagedError{name, err}
		}
		names = append(names, s)
	}
	return names, nil
}
