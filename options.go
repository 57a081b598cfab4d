package ratelimit

import (
	"fmt"
	"strconv"
	"time"
)

// An Option configures one limiter, and also a keyed limiter.
type Option interface {
	KeyedOption
	applyPlain(*options)
}

// A KeyedOption configures a keyed limiter. Every Option and every TableOption
// is one.
type KeyedOption interface {
	applyKeyed(*options)
}

// A TableOption configures the table of a keyed limiter.
type TableOption interface {
	KeyedOption
	applyTable(*options)
}

type options struct {
	clock   Clock
	maxWait time.Duration
	shards  int
	maxKeys int

	also        []Policy
	overflow    Policy
	hasOverflow bool
	err         error // the first option that is out of its range
}

func (o *options) reject(err error) {
	if o.err == nil {
		o.err = err
	}
}

type plainOption func(*options)

func (f plainOption) applyPlain(o *options) { f(o) }
func (f plainOption) applyKeyed(o *options) { f(o) }

type tableOption func(*options)

func (f tableOption) applyTable(o *options) { f(o) }
func (f tableOption) applyKeyed(o *options) { f(o) }

// WithClock takes the time from c. The default is SystemClock.
func WithClock(c Clock) Option {
	return plainOption(func(o *options) {
		if c == nil {
			o.reject(invalid("clock", c, "must not be nil"))
		}
		o.clock = c
	})
}

// WithMaxWait refuses, with ErrWaitTooLong and without a charge, a Reserve or
// Wait that would take longer than d. The default is no bound.
func WithMaxWait(d time.Duration) Option {
	return plainOption(func(o *options) {
		if d < 0 {
			o.reject(invalid("max wait", d, "must be at least 0"))
		}
		o.maxWait = d
	})
}

// WithShards splits the table of a keyed limiter into at least n parts that
// are locked one by one; n is rounded up to a power of two. The default is
// chosen from GOMAXPROCS.
func WithShards(n int) TableOption {
	return tableOption(func(o *options) {
		if n < 1 || n > maxShards {
			o.reject(invalid("shards", n, "must be from 1 to "+strconv.Itoa(maxShards)))
		}
		o.shards = n
	})
}

// WithMaxKeys bounds the keys that a keyed limiter holds, over all shards. While
// n keys are in use, further keys share one overflow budget (WithOverflow): a
// flood of made-up keys can neither exhaust the memory nor free a blocked key,
// but it starves new keys while it lasts. The default is no bound.
func WithMaxKeys(n int) TableOption {
	return tableOption(func(o *options) {
		if n < 1 {
			o.reject(invalid("max keys", n, "must be at least 1"))
		}
		o.maxKeys = n
	})
}

type keyedOption func(*options)

func (f keyedOption) applyKeyed(o *options) { f(o) }

// WithOverflow makes p the policy of the one budget that the keys beyond
// WithMaxKeys share. The default is the limiter's own policy, without those of
// WithAlso, and Blocked for NewKeyedFunc.
func WithOverflow(p Policy) KeyedOption {
	return keyedOption(func(o *options) {
		if err := p.Validate(); err != nil {
			o.reject(fmt.Errorf("overflow: %w", err))
		}
		o.overflow, o.hasOverflow = p, true
	})
}

// WithAlso makes every key satisfy these policies too, such as 1000 in an hour
// beside 10 in a second. They are decided together: all are charged or none, and
// the decision reports the tightest. The default is none.
func WithAlso(policies ...Policy) KeyedOption {
	return keyedOption(func(o *options) {
		for _, p := range policies {
			if err := p.Validate(); err != nil {
				o.reject(fmt.Errorf("also: %w", err))
			}
			o.also = append(o.also, p)
		}
	})
}

// overflowOr returns the policy of WithOverflow, or else p.
func (o *options) overflowOr(p Policy) Policy {
	if o.hasOverflow {
		return o.overflow
	}
	return p
}

func defaultOptions() options { return options{maxWait: Never} }

func plainOptions(opts []Option) (options, error) {
	o := defaultOptions()
	for _, opt := range opts {
		if opt != nil {
			opt.applyPlain(&o)
		}
	}
	return o, o.err
}

func keyedOptions(opts []KeyedOption) (options, error) {
	o := defaultOptions()
	for _, opt := range opts {
		if opt != nil {
			opt.applyKeyed(&o)
		}
	}
	return o, o.err
}
