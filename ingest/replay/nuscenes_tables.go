package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
)

// token names a record of the tables: the 16 bytes of its 32 hexadecimal digits, or the begin
// of the SHA-256 of another text.
type token [16]byte

func tokenOf(text []byte) (t token) {
	if len(text) == 2*len(t) {
		if _, err := hex.Decode(t[:], text); err == nil {
			return t
		}
	}
	sum := sha256.Sum256(text)
	copy(t[:], sum[:])
	return t
}

// nuTables are the parts of the tables that sweeps of a LiDAR need.
type nuTables struct {
	*nuScenes
	folder   string
	channels map[token]string // channels of the sensors that are LiDARs
	mounts   map[token]mount  // calibrated sensors that are LiDARs
	scenes   map[token]int32  // position in names
	names    []string         // scenes in the order of the table
	samples  map[token]int32  // scene of a sample
	found    []sweep
	tokens   map[token]bool  // tokens of found
	egos     map[token]int32 // position in found of the first sweep that waits for this pose of the vehicle
}

type mount struct {
	channel string
	at      *rigid
}

// readTables appends the sweeps of all scenes, or of the wanted ones.
func (s *nuScenes) readTables(folder string, wanted []string) error {
	t := &nuTables{nuScenes: s, folder: folder, channels: map[token]string{}, mounts: map[token]mount{},
		scenes: map[token]int32{}, samples: map[token]int32{}, egos: map[token]int32{}, tokens: map[token]bool{}}
	for _, read := range []func() error{t.readSensors, t.readMounts, func() error { return t.readScenes(wanted) },
		t.readSamples, t.readSweeps, t.readEgos} {
		if err := read(); err != nil {
			return fmt.Errorf("nuscenes: %w", err)
		}
	}
	return t.finish()
}

// each reads a table and calls take for each record, with its members by key. A record that
// take refuses is passed over or ends the reading; a file that is no table ends it always.
func (t *nuTables) each(name string, keys []string, take func(r *tableRecord) error) error {
	path := filesys.Join(t.folder, name)
	t.tables = append(t.tables, path)
	table, err := openJSONTable(path)
	if err != nil {
		return err
	}
	defer table.close()
	r := tableRecord{table: table, keys: keys, texts: make([][]byte, len(keys))}
	for {
		if err := table.next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		err := r.read()
		if err == nil {
			err = take(&r)
		}
		var bad *BadInputError
		switch {
		case err == nil:
		case errors.As(err, &bad):
			if err := t.pass(bad); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// tableRecord is a record of a table: texts[i] is the text of keys[i].
type tableRecord struct {
	table       *jsonTable
	keys        []string
	texts       [][]byte
	timestamp   int64
	translation [3]float64
	rotation    [4]float64
}

// read reads the members of the table's object. Every key must be there.
func (r *tableRecord) read() error {
	for i := range r.texts {
		r.texts[i] = nil
	}
	r.timestamp, r.translation, r.rotation = -1, [3]float64{}, [4]float64{}
	p := &r.table.parser
	err := r.table.members(func(key string) (bool, error) {
		i := slices.Index(r.keys, key)
		if i < 0 {
			return false, nil
		}
		switch key {
		case "timestamp":
			v, err := p.number()
			if err == nil && !(v >= 0 && v <= maxMicros) || v != float64(int64(v)) {
				err = p.fault("timestamp %g is no number of microseconds since 1970", v)
			}
			r.timestamp, r.texts[i] = int64(v), []byte{}
			return true, err
		case "translation":
			r.texts[i] = []byte{}
			return true, r.table.floats(r.translation[:])
		case "rotation":
			r.texts[i] = []byte{}
			return true, r.table.floats(r.rotation[:])
		}
		text, err := p.text()
		r.texts[i] = text
		return true, err
	})
	if err != nil {
		return err
	}
	for i, text := range r.texts {
		if text == nil {
			return r.table.bad("there is no %s", r.keys[i])
		}
	}
	return nil
}

func (r *tableRecord) token(i int) token { return tokenOf(r.texts[i]) }

// motion returns rotation and translation.
func (r *tableRecord) motion() (*rigid, error) {
	m, ok := rigidOf(r.rotation, r.translation)
	if !ok {
		return nil, r.table.bad("rotation %v and translation %v are no motion", r.rotation, r.translation)
	}
	return &m, nil
}

func (t *nuTables) readSensors() error {
	return t.each("sensor.json", []string{"token", "channel", "modality"}, func(r *tableRecord) error {
		if string(r.texts[2]) == "lidar" {
			t.channels[r.token(0)] = string(r.texts[1])
		}
		return nil
	})
}

func (t *nuTables) readMounts() error {
	keys := []string{"token", "sensor_token", "translation", "rotation"}
	return t.each("calibrated_sensor.json", keys, func(r *tableRecord) error {
		channel, ok := t.channels[r.token(1)]
		if !ok {
			return nil
		}
		at, err := r.motion()
		if err == nil {
			t.mounts[r.token(0)] = mount{channel: channel, at: at}
		}
		return err
	})
}

func (t *nuTables) readScenes(wanted []string) error {
	err := t.each("scene.json", []string{"token", "name"}, func(r *tableRecord) error {
		name := string(r.texts[1])
		if slices.Contains(t.names, name) {
			return r.table.bad("there are two scenes %.80q", name)
		}
		if wanted == nil || slices.Contains(wanted, name) {
			t.scenes[r.token(0)] = int32(len(t.names))
			t.names = append(t.names, name)
		}
		return nil
	})
	for _, name := range wanted {
		if err == nil && !slices.Contains(t.names, name) {
			return fmt.Errorf("there is no scene %.80q in %s", name, filesys.Join(t.folder, "scene.json"))
		}
	}
	return err
}

func (t *nuTables) readSamples() error {
	return t.each("sample.json", []string{"token", "scene_token"}, func(r *tableRecord) error {
		if scene, ok := t.scenes[r.token(1)]; ok {
			t.samples[r.token(0)] = scene
		}
		return nil
	})
}

func (t *nuTables) readSweeps() error {
	keys := []string{"token", "sample_token", "ego_pose_token", "calibrated_sensor_token", "filename", "timestamp"}
	return t.each("sample_data.json", keys, func(r *tableRecord) error {
		at, lidar := t.mounts[r.token(3)]
		scene, ours := t.samples[r.token(1)]
		if !lidar || !ours {
			return nil
		}
		file := filepath.FromSlash(string(r.texts[4]))
		if !filepath.IsLocal(file) {
			return r.table.bad("the file name %.200q leaves the folder of the data set", file)
		}
		id := r.token(0)
		if t.tokens[id] {
			return r.table.bad("the scan %.200q is there twice, by its token", file)
		}
		t.tokens[id] = true
		ego := r.token(2)
		same, ok := t.egos[ego]
		if !ok {
			same = -1
		}
		t.egos[ego] = int32(len(t.found))
		t.found = append(t.found, sweep{root: filesys.Dir(t.folder), file: file, scene: scene,
			sequence: t.names[scene], sensor: at.channel, timeNs: r.timestamp * 1000, clock: UTC, sensorAt: at.at,
			sameEgo: same})
		return nil
	})
}

func (t *nuTables) readEgos() error {
	return t.each("ego_pose.json", []string{"token", "translation", "rotation"}, func(r *tableRecord) error {
		i, ok := t.egos[r.token(0)]
		if !ok {
			return nil
		}
		at, err := r.motion()
		for ; err == nil && i >= 0; i = t.found[i].sameEgo {
			t.found[i].egoAt = at
		}
		return err
	})
}

// finish appends the sweeps to the source by scene, channel and time, numbered, without those
// whose files are not there: the data set comes in parts, which few users have all.
func (t *nuTables) finish() error {
	slices.SortStableFunc(t.found, func(a, b sweep) int {
		return cmp.Or(cmp.Compare(a.scene, b.scene), strings.Compare(a.sensor, b.sensor),
			cmp.Compare(a.timeNs, b.timeNs), strings.Compare(a.file, b.file))
	})
	if err := numberSweeps(t.found); err != nil {
		return err
	}
	before, still, unplaced := len(t.sweeps), 0, 0
	folders := map[string]map[string]bool{}
	for i := range t.found {
		at := &t.found[i]
		there, err := at.isThere(folders)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		still++
		if at.egoAt == nil {
			unplaced++
		}
		t.sweeps = append(t.sweeps, *at)
	}
	root := filesys.Dir(t.folder)
	switch missing := len(t.found) - still; {
	case len(t.found) == 0:
		return fmt.Errorf("nuscenes: the tables in %s name no scan of a LiDAR", t.folder)
	case len(t.sweeps) == before:
		return fmt.Errorf("nuscenes: none of the %d scans that the tables in %s name is there; the first is %s",
			missing, t.folder, t.found[0].path())
	case missing > 0 && t.log != nil:
		t.log.Warn(fmt.Sprintf("%d of %d scans that the tables name are not there", missing, len(t.found)),
			"folder", root)
	}
	if unplaced > 0 && t.log != nil {
		t.log.Warn(fmt.Sprintf("%d %s no pose: ego_pose.json lacks the record", unplaced,
			plural(int64(unplaced), "scan has", "scans have")), "folder", t.folder)
	}
	return nil
}

// isThere reports whether the file of a sweep, perhaps in gzip, is in its folder. folders holds
// the names in the folders that were asked for before.
func (s *sweep) isThere(folders map[string]map[string]bool) (bool, error) {
	folder, name := filesys.Split(s.file)
	names, ok := folders[folder]
	if !ok {
		entries, err := filesys.ReadDir(filesys.Join(s.root, folder))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("nuscenes: %w", err)
		}
		names = map[string]bool{}
		for _, e := range entries {
			names[e.Name()] = true
		}
		folders[folder] = names
	}
	if !names[name] && names[name+".gz"] {
		s.file += ".gz"
		return true, nil
	}
	return names[name], nil
}
