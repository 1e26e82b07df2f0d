package read

import (
	"context"
	"path"
	"strings"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// topicListing holds the names of one topic's commit records.
type topicListing struct {
	folder     string
	base       bool
	plan       bool
	accepted   []string // names of later bases
	partitions []partitionListing
}

type partitionListing struct {
	id        string
	manifests []string // paths, in order of their starts
	retired   []int64  // starts of retired commits, ascending
}

// listTopics lists the commit records of all topics. It calls strange with each path
// that is not that of a commit record.
func listTopics(ctx context.Context, store sinks.Reader, strange func(name string)) ([]*topicListing, error) {
	var topics []*topicListing
	err := store.List(ctx, record.CommitsFolder, func(e sinks.Entry) error {
		part := strings.Split(e.Name, "/")
		if e.Name == record.StoreFile || record.IsContentName(e.Name) ||
			strings.HasPrefix(path.Base(e.Name), record.NewPrefix) {
			return nil
		}
		if _, ok := record.IsPartName(e.Name); ok {
			return nil
		}
		if _, ok := record.PlaceNumber(e.Name); ok {
			return nil
		}
		if _, _, ok := record.ParseReplayName(e.Name); ok {
			return nil
		}
		if len(part) < 4 || part[1] != "topics" {
			strange(e.Name)
			return nil
		}
		folder := record.TopicsFolder + "/" + part[2]
		if n := len(topics); n == 0 || topics[n-1].folder != folder {
			topics = append(topics, &topicListing{folder: folder})
		}
		t := topics[len(topics)-1]
		_, isManifest := record.ManifestStart(part[len(part)-1])
		retired, isRetired := record.RetiredStart(part[len(part)-1])
		switch {
		case len(part) == 4 && part[3] == record.BaseFile:
			t.base = true
		case len(part) == 4 && part[3] == record.PlanFile:
			t.plan = true
		case len(part) == 4 && record.IsBaseName(part[3]):
			t.accepted = append(t.accepted, part[3])
		case len(part) == 5 && (isManifest || isRetired):
			if n := len(t.partitions); n == 0 || t.partitions[n-1].id != part[3] {
				t.partitions = append(t.partitions, partitionListing{id: part[3]})
			}
			p := &t.partitions[len(t.partitions)-1]
			if isManifest {
				p.manifests = append(p.manifests, e.Name)
			} else {
				p.retired = append(p.retired, retired)
			}
		default:
			strange(e.Name)
		}
		return nil
	})
	return topics, err
}
