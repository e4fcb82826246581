package aggregator_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/schema"
)

// histories is a store of conversations that has room for so many parts.
type histories struct {
	room  int
	parts map[string]int64
}

func (h *histories) Put(_ context.Context, r io.Reader) (schema.Object, error) {
	data, err := io.ReadAll(r)
	if err == nil && len(h.parts) >= h.room {
		err = objects.ErrFull
	}
	o := schema.Object{Digest: fmt.Sprint("part-", len(data)), Size: int64(len(data))}
	if err == nil {
		h.parts[o.Digest] = o.Size
	}
	return o, err
}

func (h *histories) Fresh(_ context.Context, o schema.Object) (bool, error) {
	return h.parts[o.Digest] == o.Size && o.Size > 0, nil
}

func TestPartsOfConversationsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, aggregator.Options{Memory: aggregator.Memory{Histories: &histories{1, map[string]int64{}}}}, library{})
		data := func(size int) string {
			return `{"data":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), size)) + `"}`
		}
		for _, c := range []struct{ request, answer, code, says string }{
			{`keep._ ` + data(3), "", schema.CodeBadRequest, "about one agent"},
			{`keep.a {}`, "", schema.CodeBadRequest, "neither data nor a digest"},
			{`keep.a {"data":3}`, "", schema.CodeBadRequest, "can not be read"},
			{`keep.a ` + data(schema.MaxPart+1), "", schema.CodeBadRequest, "at most 1048576"},
			{`keep.a {"digest":"part-3","size":3}`, `{"digest":"part-3","size":3}`, "", ""},
			{`keep.a ` + data(3), `{"digest":"part-3","size":3,"known":true}`, "", ""},
			{`keep.b {"digest":"part-3","size":3}`, `{"digest":"part-3","size":3,"known":true}`, "", ""},
			{`keep.a ` + data(schema.MaxPart), "", schema.CodeUnavailable, "full"},
		} {
			subject, body, _ := strings.Cut(c.request, " ")
			got, failed := f.request(subject, body)
			if got != c.answer || (failed == nil) != (c.code == "") || failed != nil && (failed.Code != c.code || !strings.Contains(failed.Message, c.says)) {
				t.Errorf("%.60s: %s %+v", c.request, got, failed)
			}
		}
		all, err := f.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range all {
			if family.GetName() == "hookfabric_history_parts_total" {
				for _, m := range family.GetMetric() {
					got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		if diff := cmp.Diff(map[string]float64{"known": 1, "refused": 1, "stored": 1, "unknown": 1}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestABrokerWithoutRoomForConversationsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, aggregator.Options{}, library{})
		if _, failed := f.request("keep.a", `{"digest":"d","size":1}`); failed == nil || failed.Code != schema.CodeUnavailable {
			t.Errorf("%+v", failed)
		}
	})
}
