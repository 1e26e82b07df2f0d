package rig

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Archive writes synthetic recordings below a folder. The bytes of a recording depend on the
// seed, its name and the numbers alone.
type Archive struct {
	Dir  string
	Seed uint64
}

// rng returns the generator of one recording.
func (a Archive) rng(name string, number int) *rand.Rand {
	h := a.Seed
	for _, c := range []byte(name) {
		h = h*1099511628211 + uint64(c)
	}
	return rand.New(rand.NewPCG(h, uint64(number)))
}

// Drive writes a folder of KITTI scans. Scans of no points are allowed.
func (a Archive) Drive(name string, scans, points int) error {
	dir := filepath.Join(a.Dir, name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var data []byte
	for i := range scans {
		rng := a.rng(name, i)
		data = data[:0]
		for range points {
			radius, angle := 2+50*rng.Float64(), 2*math.Pi*rng.Float64()
			for _, v := range [...]float64{radius * math.Cos(angle), radius * math.Sin(angle), 2 * rng.NormFloat64(),
				rng.Float64()} {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%010d.bin", i)), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// Drawings writes a file of QuickDraw drawings, a line each. Every bad-th line is no drawing;
// 0: all are.
func (a Archive) Drawings(name string, drawings, bad int) error {
	rng := a.rng(name, 0)
	return a.lines(name, drawings, bad, func(i int) any {
		strokes := make([][2][]int, 1+rng.IntN(4))
		for s := range strokes {
			for range 2 + rng.IntN(12) {
				strokes[s][0] = append(strokes[s][0], rng.IntN(256))
				strokes[s][1] = append(strokes[s][1], rng.IntN(256))
			}
		}
		return map[string]any{"word": "cow", "key_id": fmt.Sprint(5_000_000_000_000_000 + i), "recognized": i%5 > 0,
			"countrycode": "SE", "drawing": strokes,
			"timestamp": fmt.Sprintf("2017-03-01 12:%02d:%02d.5 UTC", i/60%60, i%60)}
	})
}

// Texts writes a file of JSON lines with an id and a text of up to so many bytes. Every bad-th
// line is none; 0: all are.
func (a Archive) Texts(name string, texts, longest, bad int) error {
	rng := a.rng(name, 0)
	return a.lines(name, texts, bad, func(i int) any {
		text := make([]byte, 1+rng.IntN(longest))
		for k := range text {
			if text[k] = byte('a' + rng.IntN(26)); rng.IntN(6) == 0 {
				text[k] = ' '
			}
		}
		text[0] = 't'
		return map[string]any{"id": fmt.Sprintf("%s-%d", filepath.Base(name), i), "text": string(text)}
	})
}

// lines writes a file of JSON lines, of which every bad-th is cut.
func (a Archive) lines(name string, n, bad int, value func(i int) any) error {
	path := filepath.Join(a.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		text, err := json.Marshal(value(i))
		if err != nil {
			return errors.Join(err, f.Close())
		}
		if bad > 0 && i%bad == bad-1 {
			text = text[:len(text)-len(text)/3-1]
		}
		out.Write(append(text, '\n')) // an error stays for Flush
	}
	return errors.Join(out.Flush(), f.Close())
}

// PCD writes a folder of PCD files, binary, of x, y and z.
func (a Archive) PCD(name string, files, points int) error {
	dir := filepath.Join(a.Dir, name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for i := range files {
		rng := a.rng(name, i)
		data := fmt.Appendf(nil, "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH %d\nHEIGHT 1\n"+
			"DATA binary\n", points)
		for range 3 * points {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(rng.NormFloat64())))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.pcd", i)), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// Mixed writes several drives, folders of PCD files and files of drawings, some of them with
// scans and lines that cannot be read: scale 1 is some 300 items in 9 inputs.
func (a Archive) Mixed(scale int) error {
	errs := []error{
		a.PCD("clouds/first", 20*scale, 60), a.PCD("clouds/second", 30*scale, 200),
		a.Drawings("drawings/cow.ndjson", 50*scale, 0), a.Drawings("drawings/broken.ndjson", 40*scale, 9),
	}
	for drive := range 4 {
		errs = append(errs, a.Drive(fmt.Sprintf("drive-%d", drive), 30*scale, 150+50*drive))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range []string{"drive-1/0000000004.bin", "drive-3/0000000000.bin", "clouds/second/000007.pcd"} {
		if err := os.Truncate(filepath.Join(a.Dir, name), 131); err != nil {
			return err
		}
	}
	return nil
}
