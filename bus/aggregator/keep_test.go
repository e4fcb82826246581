package aggregator_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
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

// Part returns a part of the stored size; its content does not matter here.
func (h *histories) Part(_ context.Context, digest string, offset int64) ([]byte, int64, error) {
	size, ok := h.parts[digest]
	switch {
	case !ok:
		return nil, 0, objects.ErrNotFound
	case offset < 0 || offset > size:
		return nil, size, objects.ErrInvalid
	}
	return bytes.Repeat([]byte("x"), int(size-offset)), size, nil
}

func TestPartsOfConversationsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &histories{parts: map[string]int64{"small": 3, "large": schema.MaxPart}}
		f := startWith(t, aggregator.Options{Memory: stores.Memory{Histories: store}}, library{})
		for _, c := range []struct{ request, answer, code, says string }{
			{`part.a {"digest":"small"}`, "", schema.CodeBadRequest, "hook.v1.ctl.part._"},
			{`part._ {"digest":"other"}`, "", schema.CodeNotFound, "no such object"},
			{`part._ {}`, "", schema.CodeNotFound, "no such object"},
			{`part._ {"digest":"small","offset":4}`, "", schema.CodeBadRequest, "no such part"},
			{`part._ {"digest":"small","offset":1}`, `{"data":"eHg=","size":3}`, "", ""},
			{`part._ {"digest":"small","offset":3}`, `{"data":"","size":3}`, "", ""},
		} {
			subject, body, _ := strings.Cut(c.request, " ")
			got, failed := f.request(subject, body)
			if got != c.answer || (failed == nil) != (c.code == "") || failed != nil && (failed.Code != c.code || !strings.Contains(failed.Message, c.says)) {
				t.Errorf("%s: %s %+v", c.request, got, failed)
			}
		}
		for offset := int64(0); offset < schema.MaxPart; {
			var part schema.FetchAnswer
			got, failed := f.request("part._", fmt.Sprintf(`{"digest":"large","offset":%d}`, offset))
			if err := schema.Unmarshal([]byte(got), &part); failed != nil || err != nil || len(got) > 1<<20 || len(part.Data) == 0 || part.Size != schema.MaxPart {
				t.Fatalf("from %d on: %d bytes, %v, %v", offset, len(got), failed, err)
			}
			offset += int64(len(part.Data))
		}
	})
}

// slowHistories reads parts when it is let.
type slowHistories struct {
	histories

	reading atomic.Int64
	let     chan struct{}
}

func (h *slowHistories) Part(ctx context.Context, digest string, offset int64) ([]byte, int64, error) {
	h.reading.Add(1)
	<-h.let
	return h.histories.Part(ctx, digest, offset)
}

// TestLargeAnswersAreBounded checks that requests without room for their answers wait until their
// clients give up, and that other requests are served beside them.
func TestLargeAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowHistories{histories: histories{room: 1, parts: map[string]int64{"part": 3}}, let: make(chan struct{})}
		f := startWith(t, aggregator.Options{Memory: stores.Memory{Histories: store}}, library{})
		const asked, room = 40, 13 // 32 MiB of 7/3 MiB each
		codes := make(chan string, asked)
		for range asked {
			go func() {
				_, failed := f.request("part._", `{"digest":"part"}`)
				if failed == nil {
					failed = &schema.ControlError{}
				}
				codes <- failed.Code
			}()
		}
		synctest.Wait()
		if n := store.reading.Load(); n != room {
			t.Errorf("%d are read at once", n)
		}
		if _, failed := f.request("keep.a", `{"digest":"part","size":3}`); failed != nil {
			t.Errorf("beside them: %+v", failed)
		}
		store.let <- struct{}{}
		synctest.Wait()
		if n := store.reading.Load(); n != room+1 || len(codes) != 1 || <-codes != "" {
			t.Errorf("when one was answered, %d are read", n)
		}
		<-time.After(5 * time.Second)
		for len(codes) > 0 {
			if code := <-codes; code != schema.CodeUnavailable {
				t.Errorf("who found no room in time hears %q", code)
			}
		}
		if n := store.reading.Load(); n != room+1 {
			t.Errorf("%d were read without a waiting call", n)
		}
		close(store.let)
		synctest.Wait()
		if len(codes) != room {
			t.Errorf("%d are answered in the end", len(codes))
		}
	})
}

func TestPartsOfConversationsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, aggregator.Options{Memory: stores.Memory{Histories: &histories{1, map[string]int64{}}},
			Allowances: ratelimit.Allowances{HistoryBytes: schema.MaxPart + 3}}, library{})
		data := func(size int) string {
			return `{"data":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), size)) + `"}`
		}
		for _, c := range []struct{ request, answer, code, says string }{
			{`keep._ ` + data(3), "", schema.CodeBadRequest, "about one agent"},
			{`keep.a {}`, "", schema.CodeBadRequest, "data and digest are missing"},
			{`keep.a {"data":3}`, "", schema.CodeBadRequest, "cannot read the request"},
			{`keep.a ` + data(schema.MaxPart+1), "", schema.CodeBadRequest, "at most 1048576"},
			{`keep.a {"digest":"part-3","size":3}`, `{"digest":"part-3","size":3}`, "", ""},
			{`keep.a ` + data(3), `{"digest":"part-3","size":3,"known":true}`, "", ""},
			{`keep.b {"digest":"part-3","size":3}`, `{"digest":"part-3","size":3,"known":true}`, "", ""},
			{`keep.a ` + data(schema.MaxPart), "", schema.CodeUnavailable, "full"},
			{`keep.a ` + data(schema.MaxPart), "", schema.CodeUnavailable, "full"}, // a part that is not stored does not count towards the agent's share
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
		if diff := cmp.Diff(map[string]float64{"known": 1, "refused": 2, "stored": 1, "unknown": 1}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestABrokerWithoutRoomForConversationsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, aggregator.Options{}, library{})
		for subject, body := range map[string]string{"keep.a": `{"digest":"d","size":1}`, "part._": `{"digest":"d"}`} {
			if _, failed := f.request(subject, body); failed == nil || failed.Code != schema.CodeUnavailable {
				t.Errorf("%s: %+v", subject, failed)
			}
		}
	})
}
