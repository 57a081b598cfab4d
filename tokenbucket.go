package ratelimit

// A TokenBucket admits bursts of up to burst units, then rate. It holds at
// most burst tokens, gains them continuously at rate, starts full, and takes
// one for each unit admitted.
//
// Bound: in any interval of length t it admits at most burst + rate·t, by the
// moments at which units may act, whatever is reserved and cancelled.
//
// Reserve takes tokens in advance: the balance goes below zero, and the
// booking may act when it would be back at zero. A Wait that wakes up late
// does not push back the ones behind it. Cancel gives back all its units when
// it is the newest booking and nothing otherwise: those behind it keep their
// moments, and a unit given back could be booked again for the same moment.
//
// Limiting is exact, in integer arithmetic, without drift. The state is one
// word, changed without a lock; a refusal writes nothing.
//
// Source: Turner, "New directions in communications", IEEE Communications
// Magazine 24(10), 1986; RFC 2697 and the virtual scheduling form of ITU-T
// I.371 (GCRA) describe the same bucket.
//
// The zero TokenBucket refuses everything. A TokenBucket must not be copied.
type TokenBucket struct {
	limiter
	_ noCopy
}

// NewTokenBucket returns a token bucket that holds at most burst tokens and
// gains rate. Both are checked as by Policy.Validate.
func NewTokenBucket(rate Rate, burst int, opts ...Option) (*TokenBucket, error) {
	return newTokenBucket(TokenBucketPolicy(rate, burst), opts)
}

func newTokenBucket(p Policy, opts []Option) (*TokenBucket, error) {
	l, err := newLimiter(p, opts)
	if err != nil {
		return nil, err
	}
	return &TokenBucket{limiter: l}, nil
}

// noCopy makes go vet's copylocks check report copies of what holds it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
