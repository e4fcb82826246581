package objects_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func open(t testing.TB, js jetstream.JetStream) *objects.Objects {
	t.Helper()
	s, err := objects.Open(t.Context(), js, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// noise is content of that many bytes, for each seed another.
func noise(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func named(data []byte) schema.Object {
	sum := sha256.Sum256(data)
	return schema.Object{Digest: "sha256-" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

func put(t testing.TB, s *objects.Objects, data []byte) schema.Object {
	t.Helper()
	o, err := s.Put(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if want := named(data); o != want {
		t.Errorf("put as %+v; it is %+v", o, want)
	}
	return o
}

// get puts the parts of an object together.
func get(t testing.TB, s *objects.Objects, o schema.Object) []byte {
	t.Helper()
	var all []byte
	for {
		data, size, err := s.Part(t.Context(), o.Digest, int64(len(all)))
		if err != nil {
			t.Fatal(err)
		}
		if size != o.Size || len(data) > objects.MaxPart {
			t.Fatalf("a part of %d bytes of an object of %d; it has %d", len(data), size, o.Size)
		}
		if len(data) == 0 {
			return all
		}
		all = append(all, data...)
	}
}

// kept are, by subject, how many messages the store holds.
func kept(t testing.TB, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), "OBJ_"+objects.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Subjects
}

func TestObjectsComeBackAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		s := open(t, js)
		store, err := js.ObjectStore(t.Context(), objects.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 1, 512 << 10, 1 << 20, 1<<20 + 1, 3<<20 + 7} {
			data := noise(uint64(size), size)
			o := put(t, s, data)
			if err := s.Has(t.Context(), o); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
			if got := get(t, s, o); !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back as %d", size, len(got))
			}
			// The client library's own tools can read them, too.
			if got, err := store.GetBytes(t.Context(), o.Digest); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back as %d from the client library: %v", size, len(got), err)
			}
		}
		bustest.Settle()
	})
}

func TestTheSameContentIsStoredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		data := noise(1, 1<<20)
		var stores []*objects.Objects
		for range 8 {
			stores = append(stores, open(t, bustest.JetStream(t, srv)))
		}
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() { put(t, stores[i%len(stores)], data) })
		}
		all.Wait()
		js := bustest.JetStream(t, srv)
		for subject, n := range kept(t, js) {
			if want := map[bool]uint64{true: 2, false: 1}[strings.Contains(subject, ".C.")]; n != want {
				t.Errorf("%d messages of %s; want %d", n, subject, want)
			}
		}
		if n := len(kept(t, js)); n != 2 {
			t.Errorf("%d subjects; want one for the content and one for its name", n)
		}
		if got := get(t, stores[3], named(data)); !bytes.Equal(got, data) {
			t.Error("it is something else now")
		}
	})
}

func TestPuttingAnObjectAgainAfterADayRenewsIt(t *testing.T) {
	bustest.PlainOnly(t, "how long objects live: nine days of one writer")
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		s := open(t, js)
		data := noise(1, 10)
		put(t, s, data)
		first := kept(t, js)
		<-time.After(23 * time.Hour)
		put(t, s, data)
		if diff := cmp.Diff(first, kept(t, js)); diff != "" {
			t.Errorf("it was young, and was stored again:\n%s", diff)
		}
		<-time.After(2 * time.Hour)
		put(t, s, data)
		second := kept(t, js)
		if len(second) != 2 || cmp.Equal(first, second) {
			t.Errorf("at first %v, now %v; want it stored again, and the old content deleted", first, second)
		}
		if got := get(t, s, named(data)); !bytes.Equal(got, data) {
			t.Error("it is something else now")
		}
		// A server in a bubble lets all lapse when the first does.
		<-time.After(8 * 24 * time.Hour)
		if err := s.Has(t.Context(), named(data)); !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("after its time: %v", err)
		}
	})
}

func TestAMissingObjectIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, bustest.JetStream(t, bustest.Start(t)))
		o := put(t, s, []byte("content"))
		for name, bad := range map[string]schema.Object{
			"no digest":       {},
			"another digest":  named([]byte("other")),
			"another size":    {Digest: o.Digest, Size: o.Size + 1},
			"in capitals":     {Digest: strings.ToUpper(o.Digest), Size: o.Size},
			"with a wildcard": {Digest: "sha256-*", Size: o.Size},
			"without a name":  {Digest: strings.TrimPrefix(o.Digest, "sha256-"), Size: o.Size},
		} {
			if err := s.Has(t.Context(), bad); !errors.Is(err, objects.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
			if _, _, err := s.Part(t.Context(), bad.Digest, 0); name != "another size" && !errors.Is(err, objects.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, offset := range []int64{-1, o.Size + 1} {
			if _, _, err := s.Part(t.Context(), o.Digest, offset); !errors.Is(err, objects.ErrInvalid) {
				t.Errorf("from %d on: %v", offset, err)
			}
		}
	})
}

func TestADamagedObjectIsNeverHandedOnAndCanBePutAgain(t *testing.T) {
	for name, spoil := range map[string]func(ctx context.Context, js jetstream.JetStream, chunks string) error{
		"another content": func(ctx context.Context, js jetstream.JetStream, chunks string) error {
			s, err := js.Stream(ctx, "OBJ_"+objects.Bucket)
			if err != nil {
				return err
			}
			if err := s.Purge(ctx, jetstream.WithPurgeSubject(chunks)); err != nil {
				return err
			}
			for range 2 {
				if _, err := js.Publish(ctx, chunks, make([]byte, 512<<10)); err != nil {
					return err
				}
			}
			return nil
		},
		"a part is gone": func(ctx context.Context, js jetstream.JetStream, chunks string) error {
			s, err := js.Stream(ctx, "OBJ_"+objects.Bucket)
			if err != nil {
				return err
			}
			m, err := s.GetLastMsgForSubject(ctx, chunks)
			if err != nil {
				return err
			}
			return s.DeleteMsg(ctx, m.Sequence)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js := bustest.JetStream(t, bustest.Start(t))
				s := open(t, js)
				data := noise(1, 1<<20)
				o := put(t, s, data)
				for subject := range kept(t, js) {
					if strings.Contains(subject, ".C.") {
						if err := spoil(t.Context(), js, subject); err != nil {
							t.Fatal(err)
						}
					}
				}
				if _, _, err := s.Part(t.Context(), o.Digest, 0); !errors.Is(err, objects.ErrDamaged) && !errors.Is(err, objects.ErrNotFound) {
					t.Errorf("error %v", err)
				}
				if err := s.Has(t.Context(), o); !errors.Is(err, objects.ErrNotFound) {
					t.Errorf("error %v", err)
				}
				put(t, s, data)
				if got := get(t, s, o); !bytes.Equal(got, data) {
					t.Error("it did not come back as it was")
				}
			})
		})
	}
}

func TestAnObjectThatCannotBeStoredIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.StartWith(t, server.Options{MaxStore: 20 << 20}))
		s := open(t, js) // the store has 16 MiB
		if _, err := s.Put(t.Context(), io.LimitReader(zeros{}, objects.MaxObject+1)); !errors.Is(err, objects.ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		if _, err := s.Put(t.Context(), iotest.ErrReader(errors.New("torn"))); err == nil || !strings.Contains(err.Error(), "torn") {
			t.Errorf("unreadable: %v", err)
		}
		if _, err := s.PutWithin(t.Context(), io.LimitReader(zeros{}, 9<<20), 50); !errors.Is(err, objects.ErrFull) || !strings.Contains(err.Error(), "--reserve") {
			t.Errorf("more than the share of agents: %v", err)
		}
		if _, err := s.Put(t.Context(), io.LimitReader(zeros{}, 32<<20)); !errors.Is(err, objects.ErrFull) {
			t.Errorf("full: %v", err)
		}
		if left := kept(t, js); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
		put(t, s, noise(1, 1<<20))
	})
}

// Whether an object fits is asked and used by one upload at a time, so that many at once
// leave the reserve free together.
func TestPutsAtOnceLeaveTheReserveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, bustest.JetStream(t, bustest.StartWith(t, server.Options{MaxStore: 20 << 20}))) // the store has 16 MiB
		var fit atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				switch _, err := s.PutWithin(t.Context(), bytes.NewReader(noise(uint64(i), 3<<20)), 50); {
				case err == nil:
					fit.Add(1)
				case !errors.Is(err, objects.ErrFull):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := fit.Load(); n != 2 {
			t.Errorf("%d objects of 3 MiB are in the half of 16 MiB", n)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestOpenExistingDoesNotCreateAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		if _, err := objects.OpenExisting(t.Context(), js, objects.Options{}); !errors.Is(err, jetstream.ErrBucketNotFound) {
			t.Errorf("error %v", err)
		}
		data := []byte("content")
		o := put(t, open(t, js), data)
		s, err := objects.OpenExisting(t.Context(), js, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := get(t, s, o); !bytes.Equal(got, data) {
			t.Errorf("it came back as %q", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Part(t.Context(), named([]byte("x")).Digest, 0); !errors.Is(err, objects.ErrUnavailable) {
			t.Errorf("after its end: %v", err)
		}
	})
}

func TestAStoppedServerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		s := open(t, js)
		o := put(t, s, []byte("content"))
		js.Conn().Close()
		_, perr := s.Put(t.Context(), strings.NewReader("more"))
		_, _, gerr := s.Part(t.Context(), o.Digest, 0)
		if herr := s.Has(t.Context(), o); !errors.Is(perr, objects.ErrUnavailable) || !errors.Is(gerr, objects.ErrUnavailable) || !errors.Is(herr, objects.ErrUnavailable) {
			t.Errorf("Put: %v, Part: %v, Has: %v", perr, gerr, herr)
		}
	})
}

// TestManyReadManyObjects asks for parts of more objects than are kept at hand.
func TestManyReadManyObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, bustest.JetStream(t, bustest.Start(t)))
		var all [][]byte
		for i := range 40 {
			all = append(all, noise(uint64(i), 1000+i))
			put(t, s, all[i])
		}
		var readers sync.WaitGroup
		for r := range 8 {
			readers.Go(func() {
				for i := range all {
					data := all[(i*7+r*5)%len(all)]
					if got := get(t, s, named(data)); !bytes.Equal(got, data) {
						t.Error("one came back as something else")
					}
				}
			})
		}
		readers.Wait()
	})
}
