package table_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed4f92381c/ratelimit/internal/table"
)

// hashes are good and bad ones: with the bad ones keys collide.
var hashes = map[string]func(int) uint64{
	"good":       mix,
	"constant":   func(int) uint64 { return 42 },
	"zero":       func(int) uint64 { return 0 },
	"three":      func(k int) uint64 { return uint64(k%3) * 0x5555_5555_5555_5555 },
	"same tag":   func(k int) uint64 { return uint64(k) << 40 },
	"same home":  func(k int) uint64 { return uint64(k) & 0x7f },
	"consistent": func(k int) uint64 { return uint64(k) },
	"at the end": func(k int) uint64 { return 0xffff_ffff_ffff_ff00 | uint64(k&3) },
}

// mix is the finalizer of splitmix64.
func mix(k int) uint64 {
	x := uint64(k) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// TestModel does random operations on a table and on a map.
func TestModel(t *testing.T) {
	t.Parallel()
	for name, hashOf := range hashes {
		for _, keys := range []int{1, 2, 5, 8, 13, 40, 300} {
			t.Run(fmt.Sprint(name, "/keys=", keys), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(keys), 2))
				var got table.Table[int, int]
				want := map[int]int{}
				for step := range 3000 {
					key := rng.IntN(keys)
					// Phases that fill and phases that empty.
					fill := step/500%2 == 0
					switch op := rng.IntN(10); {
					case op < 6 && fill || op < 2:
						if found := got.Find(hashOf(key), key); found != nil {
							*found, want[key] = step, step
						} else {
							got.Insert(hashOf(key), key, step, hashOf)
							want[key] = step
						}
					case op < 8:
						got.Delete(hashOf(key), key, hashOf)
						delete(want, key)
					default:
						n, third := rng.IntN(20), step%3
						asked := 0
						removed := got.Sweep(n, func(v *int) bool { asked++; return *v%3 == third && *v < step-200 }, hashOf)
						before := len(want)
						for k, v := range want {
							if got.Find(hashOf(k), k) == nil {
								if v%3 != third || v >= step-200 {
									t.Fatalf("step %d: Sweep lost key %d with state %d", step, k, v)
								}
								delete(want, k)
							}
						}
						if removed != before-len(want) || asked > n {
							t.Fatalf("step %d: Sweep(%d): got %d removed of %d asked, want %d", step, n, removed, asked, before-len(want))
						}
					}
					if step%64 == 0 || keys < 10 {
						same(t, step, &got, want, hashOf, keys)
					}
				}
			})
		}
	}
}

func same(t *testing.T, step int, got *table.Table[int, int], want map[int]int, hashOf func(int) uint64, keys int) {
	t.Helper()
	if got.Len() != len(want) {
		t.Fatalf("step %d: Len: got %d, want %d", step, got.Len(), len(want))
	}
	if got.Len() > 0 && got.Slots() <= got.Len() {
		t.Fatalf("step %d: got %d slots for %d keys: a search would not end", step, got.Slots(), got.Len())
	}
	for key := range keys {
		found := got.Find(hashOf(key), key)
		state, ok := want[key]
		if (found != nil) != ok || ok && *found != state {
			t.Fatalf("step %d: Find(%d): got %v, want %v, %v", step, key, found, state, ok)
		}
	}
	seen := map[int]int{}
	got.All(func(k int, v *int) { seen[k] += *v })
	if len(seen) != len(want) {
		t.Fatalf("step %d: All: got %d keys, want %d", step, len(seen), len(want))
	}
	for k, v := range seen {
		if want[k] != v {
			t.Fatalf("step %d: All of %d: got %d, want %d", step, k, v, want[k])
		}
	}
}

func TestSweepGoesRound(t *testing.T) {
	t.Parallel()
	hashOf := hashes["good"]
	var got table.Table[int, int]
	for k := range 1000 {
		got.Insert(hashOf(k), k, 0, hashOf)
	}
	// As many slots as there are visit every key, wherever the cursor stands.
	got.Sweep(777, func(*int) bool { return false }, hashOf)
	for left := got.Slots(); left > 0; left -= 16 {
		got.Sweep(min(16, left), func(v *int) bool { *v++; return false }, hashOf)
	}
	got.All(func(k int, v *int) {
		if *v != 1 {
			t.Errorf("key %d was visited %d times, want once", k, *v)
		}
	})
}

// TestShrinks gives memory back after a flood, by Sweep and by Delete.
func TestShrinks(t *testing.T) {
	t.Parallel()
	hashOf := hashes["good"]
	for _, how := range []string{"sweep", "delete"} {
		var got table.Table[int, int]
		const flood = 50_000
		for k := range flood {
			got.Insert(hashOf(k), k, k, hashOf)
			if most := got.Len()*19/10 + 8; got.Slots() > most {
				t.Fatalf("%d keys: got %d slots, want at most %d", got.Len(), got.Slots(), most)
			}
		}
		if how == "sweep" {
			for range 4*got.Slots()/16 + 1 {
				got.Sweep(16, func(v *int) bool { return *v >= 10 }, hashOf)
			}
		} else {
			for k := 10; k < flood; k++ {
				got.Delete(hashOf(k), k, hashOf)
			}
		}
		if got.Len() != 10 || got.Slots() > 60 {
			t.Errorf("%s: got %d keys in %d slots, want 10 in at most 60", how, got.Len(), got.Slots())
		}
		for k := range 10 {
			if v := got.Find(hashOf(k), k); v == nil || *v != k {
				t.Errorf("%s: key %d: got %v, want %d", how, k, v, k)
			}
		}
	}
}

func TestZeroTable(t *testing.T) {
	t.Parallel()
	hashOf := hashes["good"]
	var got table.Table[int, int]
	got.Delete(1, 1, hashOf)
	if got.Find(1, 1) != nil || got.Len() != 0 || got.Slots() != 0 || got.Sweep(10, func(*int) bool { return true }, hashOf) != 0 {
		t.Error("got something in a zero table")
	}
	got.All(func(int, *int) { t.Error("got a key in a zero table") })
}
