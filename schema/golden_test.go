package schema_test

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

var update = flag.Bool("update", false, "write the golden files from the examples")

const wireDir = "testdata/wire"

// Each golden file is the indented form of one message. The example must encode to it,
// byte for byte, and it must decode to the example.
func TestEveryMessageMatchesItsGoldenFile(t *testing.T) {
	seen := map[string]bool{}
	for name, example := range wireExamples() {
		seen[name+".json"] = true
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(wireDir, name+".json")
			got := indented(t, example)
			if *update {
				write(t, path, got)
			}
			want := read(t, path)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the example encodes otherwise than %s (-file +code):\n%s", path, diff)
			}
			decoded := reflect.New(reflect.TypeOf(example).Elem()).Interface()
			decode(t, want, decoded)
			if diff := cmp.Diff(want, indented(t, decoded)); diff != "" {
				t.Errorf("decoded and encoded again, %s changed:\n%s", path, diff)
			}
		})
	}
	for _, file := range list(t, wireDir, ".json") {
		if !seen[file] && file != "tokens.json" && file != "header-values.json" {
			t.Errorf("%s is the golden file of no example; delete it or add one", file)
		}
	}
}

// A newer peer may send members and words that this version does not know. The files are
// written by hand and must not change with the types.
func TestMessagesOfANewerPeerAreRead(t *testing.T) {
	for name, example := range wireExamples() {
		path := filepath.Join(wireDir, "newer", name+".json")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			decoded := reflect.New(reflect.TypeOf(example).Elem()).Interface()
			decode(t, read(t, path), decoded)
			if diff := cmp.Diff(indented(t, example), indented(t, decoded)); diff != "" {
				t.Errorf("what this version understands of %s is not the example (-want +got):\n%s", path, diff)
			}
		})
	}
	if n := len(list(t, filepath.Join(wireDir, "newer"), ".json")); n < 8 {
		t.Errorf("only %d messages of newer peers; there is one for every kind of message", n)
	}
}

func TestEveryFieldAppearsInSomeGoldenFile(t *testing.T) {
	members := map[string]bool{}
	for _, file := range list(t, wireDir, ".json") {
		dec := jsontext.NewDecoder(strings.NewReader(string(read(t, filepath.Join(wireDir, file)))))
		for {
			tok, err := dec.ReadToken()
			if err != nil {
				break
			}
			if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' && n%2 == 1 {
				members[tok.String()] = true
			}
		}
	}
	for _, v := range []any{
		schema.Event{}, schema.Result{}, schema.Verdict{}, schema.ExecutedHook{}, schema.Injection{}, schema.Outcome{},
		schema.BatchReply{}, schema.Beat{}, schema.Candidate{}, schema.ConfigRequest{}, schema.ConfigAnswer{}, schema.Problem{}, schema.VersionInfo{},
		schema.HooksRequest{}, schema.HooksAnswer{}, schema.StatusRequest{}, schema.BrokerStatus{}, schema.ShadowStatus{}, schema.ShadowCount{},
		schema.BatchProgress{}, schema.Ack{}, schema.ControlError{}, schema.Record{}, schema.InjectionRecord{},
		schema.FabricStatus{}, schema.PoolStatus{}, schema.WorkerStatus{}, schema.Config{}, schema.Hook{}, schema.Override{}, schema.TLS{}, schema.PythonHosts{}, schema.Pack{}, schema.RuleException{},
		schema.Restart{}, schema.Terminate{}, schema.Workspace{}, schema.Object{},
		schema.InjectRequest{}, schema.Receipt{}, schema.PendingRequest{}, schema.PendingAnswer{}, schema.PendingItem{}, schema.Scope{},
		schema.WithdrawRequest{}, schema.WithdrawAnswer{}, schema.AckRequest{}, schema.DrainRequest{}, schema.DrainAnswer{}, schema.FetchRequest{},
		schema.FetchAnswer{}, schema.AnswerRequest{}, schema.ModeRequest{}, schema.ModeAnswer{}, schema.RoundRequest{}, schema.Round{},
		schema.SubagentResult{}, schema.BackgroundResult{}, schema.Freeze{}, schema.FreezeRequest{}, schema.FreezeAnswer{}, schema.FreezeChange{},
		schema.FollowRequest{}, schema.Standing{}, schema.PartRequest{},
	} {
		for f := range fields(reflect.TypeOf(v)) {
			if !members[f] {
				t.Errorf("%T: no golden file has the member %q", v, f)
			}
		}
	}
}

// The event's fields are a promise: fields may be added, but not removed.
func TestAnEventHasTheDocumentedFields(t *testing.T) {
	got := fields(reflect.TypeFor[schema.Event]())
	want := strings.Fields(`hook_type event_id session_id orchestrator_id agent_id runtime timestamp tool_name tool_kind tool_args action
		tool_input tool_output tool_use_id error message prompt response iteration history_ref history flags cwd labels native`)
	for _, f := range want {
		if !got[f] {
			t.Errorf("the event has no field %q", f)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the event has %d fields, %d are documented; write the new ones into wire.md and here", len(got), len(want))
	}
	for _, event := range schema.EventTypes() {
		if _, ok := wireExamples()["event."+string(event)]; !ok {
			t.Errorf("%s has no example", event)
		}
	}
}

func fields(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	delete(names, "-") // sent in headers
	return names
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	data, err := schema.Marshal(v)
	if err != nil {
		t.Fatalf("encoding %T: %v", v, err)
	}
	value := jsontext.Value(data)
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	return append(value, '\n')
}

func decode(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := schema.Unmarshal(data, v); err != nil {
		t.Fatalf("decoding %T: %v", v, err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test ./schema -update to write golden files", err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, dir, suffix string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names
}
