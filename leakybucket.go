package ratelimit

// A LeakyBucket holds at most capacity units of water, which drain evenly at
// rate. n units enter if level + n ≤ capacity.
//
// Allow is the meter: it says whether units enter. Reserve and Wait are the
// queue: a booking may act when its units have drained, or with
// WithImmediateFirst when the last of them starts to. A full bucket gives
// ErrQueueFull at once. A level does not tell metered units from queued ones,
// so use one bucket for one of the two.
//
// Bound: booked moments are never closer than 1/rate for each unit; in any
// interval of length t at most capacity + rate·t units enter.
//
// Cancel gives back all its units when it is the newest to have entered and
// nothing otherwise: those behind it keep their slots.
//
// Limiting is exact, in integer arithmetic, without drift. The state is one
// word, changed without a lock; a refusal writes nothing.
//
// Source: the meter is the continuous-state leaky bucket of ITU-T I.371; the
// queue is the shaper of Tanenbaum and Wetherall, Computer Networks, 5.3.
//
// The zero LeakyBucket refuses everything. A LeakyBucket must not be copied.
type LeakyBucket struct {
	limiter
	_ noCopy
}

// NewLeakyBucket returns an empty leaky bucket that holds at most capacity
// units and drains at rate. Both are checked as by Policy.Validate.
func NewLeakyBucket(rate Rate, capacity int, opts ...Option) (*LeakyBucket, error) {
	return newLeakyBucket(LeakyBucketPolicy(rate, capacity), opts)
}

func newLeakyBucket(p Policy, opts []Option) (*LeakyBucket, error) {
	l, err := newLimiter(p, opts)
	if err != nil {
		return nil, err
	}
	return &LeakyBucket{limiter: l}, nil
}
