package app

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/builtin/packs"
	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
	"github.com/hookfabric/hookfabric/workers/cel"
)

// ReadConfig reads a hooks.yaml and checks its form, its matchers and its conditions.
func ReadConfig(path string) (*hooksyaml.Document, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return checkConfig(path, data)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	defer f.Close()
	return readBounded(f)
}

// readBounded reads at most one byte more than hooksyaml.MaxFile, so that the parser rejects a
// larger file.
func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, hooksyaml.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return data, nil
}

// checkConfig is [ReadConfig] for the text of a file.
func checkConfig(path string, data []byte) (*hooksyaml.Document, error) {
	compiler, err := cond.NewCompiler()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("cannot find the folder of the configuration: %w", err)
	}
	doc, err := hooksyaml.Read(path, data, hooksyaml.Options{
		CheckCondition: func(expr string) error {
			_, err := compiler.Compile(expr)
			return err
		},
		CheckExpression: expressions(compiler),
		Packs:           packs.All(),
		ReadFile:        func(name string) ([]byte, error) { return readFile(inFolder(dir, name)) },
		Now:             time.Now(),
	})
	if err != nil {
		return nil, err
	}
	doc.Config.Dir = dir
	return doc, nil
}

// inFolder returns a path that is relative to a folder.
func inFolder(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// expressions returns the function that checks the options of hooks of type cel.
func expressions(c *cond.Compiler) func(option, expr string) error {
	return func(option, expr string) error {
		_, err := cel.Check(c, option, expr)
		return err
	}
}

// toApply checks a broker's own hooks.yaml and returns it with a note on why it is applied.
func toApply(path string, data []byte, why string) (*control.File, error) {
	doc, err := checkConfig(path, data)
	if err != nil {
		return nil, err
	}
	return &control.File{Name: path, Dir: doc.Config.Dir, Text: string(data), Files: doc.Files, Note: why + filepath.Base(path)}, nil
}
