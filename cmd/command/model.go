package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"entropipe/models"
	"entropipe/sparse/token"
)

// hubName matches names of models on a hub: OWNER/NAME.
var hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

// LocalFolder returns an error if lm is no path here but looks like the name of a model
// on a hub: models are not fetched by name.
func LocalFolder(lm string) error {
	if _, err := os.Stat(lm); !errors.Is(err, fs.ErrNotExist) || !hubName.MatchString(lm) {
		return nil
	}
	return fmt.Errorf("%s: there is no such folder. Local folders only: no model is fetched by name; hf download %s "+
		"--local-dir %s makes a folder", lm, lm, filepath.Base(lm))
}

// NameOfModel returns the name of a model for the table tokens: the last folder of its
// path; ORG/NAME if the path is a snapshot in the cache of Hugging Face's programs,
// models--ORG--NAME/snapshots/COMMIT; builtin:NAME as it is.
func NameOfModel(lm string) string {
	if strings.HasPrefix(lm, "builtin:") {
		return lm
	}
	if path, err := filepath.Abs(lm); err == nil {
		lm = path
	}
	parent, cached := filepath.Dir(lm), filepath.Base(filepath.Dir(filepath.Dir(lm)))
	if name, ok := strings.CutPrefix(cached, "models--"); ok && filepath.Base(parent) == "snapshots" {
		return strings.ReplaceAll(name, "--", "/")
	}
	return filepath.Base(lm)
}

// OpenTokenizer reads the tokenizer.json in the folder of a model. embeddings is the
// number of rows of the model's embedding matrix, which bounds the ids; 0 if it is
// unknown. It returns nil without an error if there is no such file.
func OpenTokenizer(lm string, embeddings int) (*token.Tokenizer, error) {
	if strings.HasPrefix(lm, "builtin:") {
		dir, err := models.Transformer(lm)
		if err != nil {
			return nil, err
		}
		data, err := fs.ReadFile(dir, "tokenizer.json")
		if err != nil {
			return nil, err
		}
		return token.Parse(data)
	}
	var t *token.Tokenizer
	var err error
	if embeddings > 0 {
		t, err = token.OpenWithin(lm, embeddings)
	} else {
		t, err = token.Open(lm)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return t, err
}
