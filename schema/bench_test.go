package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// kibEvent returns the event of the performance budgets: 1 KiB of a tool call.
func kibEvent(tb testing.TB) []byte {
	e := *events()[schema.PreToolUse]
	e.Native = ""
	e.ToolInput = raw(fmt.Sprintf(`{"command":%q,"description":"tidy up","timeout":120}`, strings.Repeat("rm -r build && ", 44)))
	body, err := schema.Marshal(&e)
	if err != nil || len(body) < 1000 || len(body) > 1100 {
		tb.Fatalf("the event has %d bytes: %v", len(body), err)
	}
	return body
}

func BenchmarkDecodeEvent(b *testing.B) {
	body := kibEvent(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.DecodeEvent(body, preToolUse); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRewriteBody(b *testing.B) {
	body := kibEvent(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.RewriteBody(body, preToolUse, raw(`{"command":"ls"}`)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeResult(b *testing.B) {
	answer := []byte(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.DecodeResult(schema.PreToolUse, answer); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerdictEncode(b *testing.B) {
	for _, hooks := range []int{1, 8} {
		v := schema.Verdict{Decision: schema.Continue, ConfigVersion: 7, Fabric: fabric}
		for i := range hooks {
			v.ExecutedHooks = append(v.ExecutedHooks, schema.ExecutedHook{
				Hook: fmt.Sprintf("policy-%d", i), Outcome: schema.OK, Duration: took(310), Worker: "w1",
			})
		}
		b.Run(fmt.Sprintf("hooks=%d", hooks), func(b *testing.B) { encodes(b, &v) })
	}
}

func BenchmarkBatchReply(b *testing.B) {
	r := schema.BatchReply{Worker: "w1"}
	for i := range 8 {
		r.Outcomes = append(r.Outcomes, schema.Outcome{Hook: i, Took: took(310)})
	}
	b.Run("encode", func(b *testing.B) { encodes(b, &r) })
	data, err := schema.Marshal(&r)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var r schema.BatchReply
			if err := schema.Unmarshal(data, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func encodes(b *testing.B, v any) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerdictDecode(b *testing.B) {
	for _, hooks := range []int{1, 8} {
		v := schema.Verdict{Decision: schema.Continue, ConfigVersion: 7, Fabric: fabric}
		for i := range hooks {
			v.ExecutedHooks = append(v.ExecutedHooks, schema.ExecutedHook{
				Hook: fmt.Sprintf("policy-%d", i), Outcome: schema.OK, Duration: took(310), Worker: "w1",
			})
		}
		data, err := schema.Marshal(&v)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("hooks=%d", hooks), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var v schema.Verdict
				if err := schema.Unmarshal(data, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
