package schema_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// Readers of wire.md need not read the code, so it must contain every word of the wire.
func TestTheContractNamesEveryWord(t *testing.T) {
	doc := string(read(t, "wire.md"))
	words := []string{
		schema.HeaderID, schema.HeaderAttempt, schema.HeaderTool, schema.HeaderSession, schema.HeaderLeft, schema.HeaderAck,
		schema.HeaderBatch, schema.HeaderConfig, schema.HeaderHooks, schema.HeaderAgent, schema.HeaderEvent, schema.HeaderBeat,
		schema.HeaderServiceError, schema.HeaderServiceErrorCode, schema.HeaderNumber, schema.HeaderDropped, schema.HeaderRetryAfter, schema.HeaderEncoding, schema.SnappyFramed, string(schema.ToolResult), string(schema.UserMessage),
		schema.HeaderTraceparent, schema.HeaderTracestate,
		string(schema.StatusBusy), string(schema.StatusStale), string(schema.StatusDraining), string(schema.StatusMismatch), string(schema.StatusMalformed),
		schema.CodeBadRequest, schema.CodeNotFound, schema.CodeConflict, schema.CodeTooOld, schema.CodeUnavailable, schema.CodeInternal,
	}
	for _, event := range schema.EventTypes() {
		words = append(words, string(event))
	}
	for _, kind := range schema.OutcomeKinds() {
		words = append(words, string(kind))
	}
	for _, v := range []any{
		schema.Event{}, schema.Result{}, schema.Verdict{}, schema.Restart{}, schema.Terminate{}, schema.Workspace{}, schema.Object{}, schema.ExecutedHook{}, schema.Injection{}, schema.BatchReply{}, schema.Outcome{},
		schema.Beat{}, schema.Candidate{}, schema.ConfigRequest{}, schema.ConfigAnswer{}, schema.Problem{}, schema.VersionInfo{},
		schema.HooksRequest{}, schema.HooksAnswer{}, schema.StatusRequest{}, schema.BrokerStatus{}, schema.LimitedStatus{}, schema.ShadowStatus{}, schema.ShadowCount{},
		schema.InjectRequest{}, schema.Receipt{}, schema.PendingRequest{}, schema.PendingAnswer{}, schema.PendingItem{}, schema.Scope{},
		schema.WithdrawRequest{}, schema.WithdrawAnswer{}, schema.AckRequest{}, schema.DrainRequest{}, schema.DrainAnswer{}, schema.FetchRequest{},
		schema.FetchAnswer{}, schema.AnswerRequest{}, schema.AnswerReceipt{}, schema.ModeRequest{}, schema.ModeAnswer{}, schema.RoundRequest{}, schema.Round{},
		schema.SubagentResult{}, schema.BackgroundResult{}, schema.Freeze{}, schema.FreezeRequest{}, schema.FreezeAnswer{}, schema.FreezeChange{},
		schema.Policy{}, schema.PolicyHook{}, schema.PolicyRequest{}, schema.PolicyAnswer{}, schema.RecordRequest{}, schema.RecordAnswer{}, schema.Unjudged{}, schema.FollowRequest{}, schema.Standing{}, schema.PartRequest{},
		schema.Record{}, schema.InjectionRecord{}, schema.FabricStatus{}, schema.ControlError{}, schema.Ack{},
	} {
		for f := range fields(reflect.TypeOf(v)) {
			words = append(words, f)
		}
	}
	for _, w := range words {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(w) + `\b`).MatchString(doc) {
			t.Errorf("wire.md does not say %q", w)
		}
	}
}

func TestTheContractNamesOnlyFilesThatExist(t *testing.T) {
	doc := string(read(t, "wire.md"))
	for _, m := range regexp.MustCompile("`([a-z.-]+\\.(?:json|txt))`").FindAllStringSubmatch(doc, -1) {
		_, wire := os.Stat(filepath.Join(wireDir, m[1]))
		_, here := os.Stat(m[1])
		if wire != nil && here != nil {
			t.Errorf("wire.md names %s, which does not exist", m[1])
		}
	}
	if strings.Contains(doc, "\t") {
		t.Error("wire.md has tabs")
	}
}
