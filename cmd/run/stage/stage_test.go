package stage

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/cmd/command"
	"entropipe/models"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
)

// A model that has nothing to do is told apart from one that has.
func TestIdleModels(t *testing.T) {
	seeds, network := &models.EntropyNet{Meta: models.Meta{Mode: models.Seed, Ops: []string{"hull2d", "hull3d"}}},
		&models.EntropyNet{Meta: models.Meta{Mode: models.Perturb, Ops: []string{"maxima2d"}}}
	for i, c := range []struct {
		m    *models.EntropyNet
		cfg  pipeline.FrameConfig
		want bool
	}{
		{seeds, pipeline.FrameConfig{}, true},
		{seeds, pipeline.FrameConfig{Hull3D: true}, false},
		{seeds, pipeline.FrameConfig{Ops: []schemas.Op{schemas.Hull3D}}, false},
		{seeds, pipeline.FrameConfig{Ops: []schemas.Op{schemas.Hull2D}, Hull3D: true}, true},
		{seeds, pipeline.FrameConfig{Ops: []schemas.Op{}, Publish: schemas.Prunable}, false},
		{network, pipeline.FrameConfig{}, false},
		{network, pipeline.FrameConfig{Ops: []schemas.Op{schemas.Hull2D, schemas.Delaunay2D}}, true},
	} {
		if got := Idle(c.m, &c.cfg); got != c.want {
			t.Errorf("row %d: %v", i, got)
		}
	}
}

// A model is put to use at most once, also when its file is replaced while it is
// read, and the last one is.
func TestModelIsUsedOncePerFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	first := writeDirections(t, path, 0)
	met, said := metrics.New(prometheus.NewRegistry(), command.Version), new(bytes.Buffer)
	log := slog.New(slog.NewTextHandler(said, nil))
	stage, err := (&Flags{Stage: "seed"}).NewStage(first, met, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	var files, shas []string
	for i := range 60 {
		files = append(files, filepath.Join(dir, strconv.Itoa(i)))
		shas = append(shas, writeDirections(t, files[i], float64(i+1)).SHA256)
	}
	file, replaced := NewModelFile(path), make(chan error)
	go func() {
		var err error
		for _, f := range files {
			err = errors.Join(err, os.Rename(f, path))
		}
		replaced <- err
	}()
	for running := true; running; {
		select {
		case err := <-replaced:
			if running = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
		file.Reload(stage, met, log)
	}
	if n := strings.Count(said.String(), "it is in use now"); n == 0 ||
		!strings.HasSuffix(said.String(), shas[len(shas)-1]+"\n") {
		t.Errorf("%d models were used, and the last one is another:\n%s", n, said)
	}
	for i, sha := range shas {
		if n := strings.Count(said.String(), sha); n > 1 {
			t.Errorf("model %d was used %d times", i, n)
		}
	}
	if strings.Contains(said.String(), "cannot be used") {
		t.Errorf("whole files were refused:\n%s", said)
	}
}

// writeDirections writes a seed model of four directions, turned by an angle, and
// returns it with its hash.
func writeDirections(t *testing.T, path string, angle float64) *models.EntropyNet {
	t.Helper()
	var directions []float32
	for quarter := range 4 {
		a := angle/100 + float64(quarter)*math.Pi/2
		directions = append(directions, float32(math.Cos(a)), float32(math.Sin(a)), 0)
	}
	m := &models.EntropyNet{Tensors: map[string]models.Tensor{"directions3": {Shape: []int{4, 3}, Data: directions}},
		Meta: models.Meta{Mode: models.Seed, Dims: 3, Ops: []string{"hull3d"}, Normalise: models.NormaliseBox,
			Survivors: map[string]float64{"hull3d": 0.5}}}
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	return m
}
