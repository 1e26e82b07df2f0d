package models

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// opDims maps the operators that a model can serve to the dimensions of their points.
var opDims = map[string]int{"hull2d": 2, "hull3d": 3, "maxima2d": 2, "maxima3d": 3}

var (
	modes        = []string{Seed, Perturb, Denoise}
	regularisers = []string{"", "none", "F", "hdiff", "hsoft"}
)

// strings returns the metadata as the file holds them: every key that has a value.
func (m *Meta) strings() map[string]string {
	s := map[string]string{
		"format": Format, "mode": m.Mode, "dims": strconv.Itoa(m.Dims), "ops": strings.Join(m.Ops, ","),
		"normalise": m.Normalise,
		"seed":      strconv.FormatUint(m.Seed, 10), "steps": strconv.Itoa(m.Steps),
	}
	var survivors []string
	for _, op := range slices.Sorted(maps.Keys(m.Survivors)) {
		survivors = append(survivors, op+"="+cmp.Or(number(m.Survivors[op]), "0"))
	}
	for key, value := range map[string]string{
		"sigma": number(m.Sigma), "regulariser": m.Regulariser, "tau": number(m.Tau),
		"survivors": strings.Join(survivors, ","),
		"dataset":   m.Dataset, "sensor": m.Sensor, "data_sha256": m.DataSHA256, "command": m.Command,
	} {
		if value != "" {
			s[key] = value
		}
	}
	return s
}

// number returns the shortest text that parses as v, and "" for 0.
func number(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// parseMeta is the inverse of strings. It fails on an unknown key.
func parseMeta(s map[string]string) (Meta, error) {
	switch format, ok := s["format"]; {
	case !ok:
		return Meta{}, fmt.Errorf("its metadata names no format: the file is no model of %s", Format)
	case format != Format:
		return Meta{}, fmt.Errorf("its format is %q, want %s", format, Format)
	}
	for _, key := range []string{"mode", "dims", "ops", "normalise", "seed", "steps"} {
		if _, ok := s[key]; !ok {
			return Meta{}, fmt.Errorf("its metadata lack %s", key)
		}
	}
	var m Meta
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if err := m.set(key, s[key]); err != nil {
			return Meta{}, fmt.Errorf("metadata %s: %q %w", key, s[key], err)
		}
	}
	return m, nil
}

var errNumber = errors.New("is no number that fits here")

// set parses the value of one key.
func (m *Meta) set(key, value string) (err error) {
	switch key {
	case "format":
	case "mode":
		m.Mode = value
	case "ops":
		m.Ops = strings.Split(value, ",")
	case "normalise":
		m.Normalise = value
	case "regulariser":
		m.Regulariser = value
	case "dataset":
		m.Dataset = value
	case "sensor":
		m.Sensor = value
	case "data_sha256":
		m.DataSHA256 = value
	case "command":
		m.Command = value
	case "dims":
		m.Dims, err = strconv.Atoi(value)
	case "steps":
		m.Steps, err = strconv.Atoi(value)
	case "seed":
		m.Seed, err = strconv.ParseUint(value, 10, 64)
	case "sigma":
		m.Sigma, err = strconv.ParseFloat(value, 64)
	case "tau":
		m.Tau, err = strconv.ParseFloat(value, 64)
	case "survivors":
		m.Survivors, err = parseSurvivors(value)
	default:
		return fmt.Errorf("is nothing that %s knows", Format)
	}
	if err != nil {
		return errNumber
	}
	return nil
}

func parseSurvivors(text string) (map[string]float64, error) {
	survivors := map[string]float64{}
	for part := range strings.SplitSeq(text, ",") {
		op, value, _ := strings.Cut(part, "=")
		v, err := strconv.ParseFloat(value, 64)
		if _, twice := survivors[op]; twice || err != nil {
			return nil, errNumber
		}
		survivors[op] = v
	}
	return survivors, nil
}

// validate returns the first fault of the metadata.
func (m *Meta) validate() error {
	switch {
	case !slices.Contains(modes, m.Mode):
		return fmt.Errorf("mode %q: want %s", m.Mode, strings.Join(modes, ", "))
	case m.Dims != 2 && m.Dims != 3:
		return fmt.Errorf("dims %d: want 2 or 3", m.Dims)
	case m.Normalise != NormaliseBox:
		return fmt.Errorf("normalise %q: want %s", m.Normalise, NormaliseBox)
	case !slices.Contains(regularisers, m.Regulariser):
		return fmt.Errorf("regulariser %q: want %s", m.Regulariser, strings.Join(regularisers[1:], ", "))
	case !(m.Tau >= 0 && m.Tau <= math.MaxFloat32):
		return fmt.Errorf("tau %v: want a number from 0 on", m.Tau)
	case m.Mode == Seed && m.Sigma != 0:
		return fmt.Errorf("sigma %v: a %s model moves no point", m.Sigma, Seed)
	case m.Mode != Seed && !(float32(m.Sigma) > 0 && m.Sigma <= math.MaxFloat32):
		return fmt.Errorf("sigma %v: want a number of metres above 0", m.Sigma)
	case m.Steps < 0:
		return fmt.Errorf("steps %d: want none or some", m.Steps)
	}
	if raw, err := hex.DecodeString(m.DataSHA256); err != nil || len(raw) != 0 && len(raw) != 32 ||
		strings.ToLower(m.DataSHA256) != m.DataSHA256 {
		return fmt.Errorf("data_sha256 %q: want 64 hexadecimal digits", m.DataSHA256)
	}
	return m.validateOps()
}

func (m *Meta) validateOps() error {
	if len(m.Ops) == 0 {
		return errors.New("ops: it serves none")
	}
	for i, op := range m.Ops {
		switch dims, ok := opDims[op]; {
		case !ok:
			return fmt.Errorf("ops: %q: want %s", op, strings.Join(slices.Sorted(maps.Keys(opDims)), ", "))
		case slices.Contains(m.Ops[:i], op):
			return fmt.Errorf("ops: %s comes twice", op)
		case dims > m.Dims:
			return fmt.Errorf("ops: %s is not for points of %d dimensions", op, m.Dims)
		}
	}
	for _, op := range slices.Sorted(maps.Keys(m.Survivors)) {
		switch v := m.Survivors[op]; {
		case !slices.Contains(m.Ops, op):
			return fmt.Errorf("survivors: %q is not among ops", op)
		case !(v >= 0 && v <= 1):
			return fmt.Errorf("survivors: %s: %v is no fraction", op, v)
		}
	}
	return nil
}
