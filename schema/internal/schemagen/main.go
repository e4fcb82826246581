// Schemagen writes the JSON Schemas of what other programs and people write for the
// fabric: events, answers of hooks, verdicts and hooks.yaml. Go generate runs it in the
// folder of package schema. The files are checked in, and a test compares them with its
// output.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/hookfabric/hookfabric/schema"
)

func main() {
	if err := generate(".", "."); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

// generate writes every schema into dir. The comments of package schema in src become
// descriptions.
func generate(src, dir string) error {
	d, err := readDocs(src)
	if err != nil {
		return err
	}
	for name, build := range schemas() {
		s, err := build(d)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.Schema = "https://json-schema.org/draft/2020-12/schema"
		if err := write(filepath.Join(dir, name+".schema.json"), s); err != nil {
			return err
		}
	}
	return nil
}

// schemas are all schemas by the names of their files.
func schemas() map[string]func(docs) (*jsonschema.Schema, error) {
	return map[string]func(docs) (*jsonschema.Schema, error){
		"event": eventSchema, "result": resultSchema, "verdict": verdictSchema, "hooks": hooksSchema,
		"control/" + schema.VerbInject:     inferred[schema.InjectRequest],
		"control/" + schema.VerbPending:    inferred[schema.PendingRequest],
		"control/" + schema.VerbWithdraw:   inferred[schema.WithdrawRequest],
		"control/" + schema.VerbAck:        inferred[schema.AckRequest],
		"control/" + schema.VerbDrain:      inferred[schema.DrainRequest],
		"control/" + schema.VerbFetch:      inferred[schema.FetchRequest],
		"control/" + schema.VerbAnswer:     inferred[schema.AnswerRequest],
		"control/" + schema.VerbRelay:      inferred[schema.AnswerRequest],
		"control/" + schema.VerbMode:       inferred[schema.ModeRequest],
		"control/" + schema.VerbCheckpoint: nothing,
		"control/" + schema.VerbRound:      inferred[schema.RoundRequest],
		"control/" + schema.VerbPolicy:     inferred[schema.PolicyRequest],
		"control/" + schema.VerbRecord:     inferred[schema.RecordRequest],
		"control/" + schema.VerbKeep:       inferred[schema.KeepRequest],
		"control/" + schema.VerbPart:       inferred[schema.PartRequest],
		"control/" + schema.VerbFollow:     inferred[schema.FollowRequest],
		"control/" + schema.VerbFreeze:     inferred[schema.FreezeRequest],
		"control/" + schema.VerbThaw:       inferred[schema.FreezeRequest],
	}
}

// nothing describes a request without members.
func nothing(docs) (*jsonschema.Schema, error) {
	return &jsonschema.Schema{Type: "object", Description: "The request has no members."}, nil
}

func write(path string, s *jsonschema.Schema) error {
	if _, err := s.CloneSchemas().Resolve(nil); err != nil {
		return fmt.Errorf("%s is not a valid schema: %w", path, err)
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
