package otlp

import (
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func TestAnswersAreReadAsOpenTelemetryWritesThem(t *testing.T) {
	written := func(rejected int64, why string) []byte {
		data, err := proto.Marshal(&collector.ExportTraceServiceResponse{
			PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: why},
		})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	later := protowire.AppendFixed64(protowire.AppendTag(nil, 9, protowire.Fixed64Type), 1)
	later = protowire.AppendFixed32(protowire.AppendTag(later, 8, protowire.Fixed32Type), 1)
	later = protowire.AppendVarint(protowire.AppendTag(later, 1, protowire.VarintType), 7) // of another type
	for name, c := range map[string]struct {
		data []byte
		want answer
	}{
		"nothing":                      {nil, answer{}},
		"rejected spans, and why":      {written(3, "too long"), answer{3, "too long"}},
		"a warning":                    {written(0, "soon"), answer{0, "soon"}},
		"fewer than none":              {written(-1, "odd"), answer{0, "odd"}},
		"fields that nobody knows yet": {append(later, written(3, "too long")...), answer{3, "too long"}},
		"no message":                   {[]byte(`{"partialSuccess":{"rejectedSpans":3}}`), answer{}},
		"a message that is cut off":    {written(3, "too long")[:6], answer{}},
		"a number without an end":      {append(written(3, ""), 0xff), answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readAnswer(c.data); got != c.want {
				t.Errorf("%x is read as %+v, not %+v", c.data, got, c.want)
			}
		})
	}
}

// FuzzAnswers checks that OpenTelemetry's own code reads the same values.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x0a\x07\x08\x03\x12\x03why"))
	f.Add([]byte("\x0a\x02\x08\x03\x0a\x05\x12\x03why\x49"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := readAnswer(data)
		var want collector.ExportTraceServiceResponse
		if got == (answer{}) || proto.Unmarshal(data, &want) != nil {
			return // it has no content, or is invalid for a reason that does not matter here
		}
		said := want.GetPartialSuccess()
		if int64(got.rejected) != max(0, said.GetRejectedSpans()) || got.why != said.GetErrorMessage() {
			t.Errorf("%x is read as %+v, not as %v", data, got, said)
		}
	})
}
