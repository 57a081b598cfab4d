package ratelimit

import (
	"sync/atomic"
	"time"
)

// A Reservation is a booking of units for a moment, or the reason why there is
// none. Its methods are safe for concurrent use. The zero Reservation is
// refused, with ErrClosed.
type Reservation struct {
	time   timeline
	at     int64
	err    error
	settle settleFunc  // nil where nothing was charged
	state  atomic.Bool // whether Cancel or Settle has been used up
}

// NewReservation returns a reservation for limiters in other modules: for a
// moment delay from now on the clock c (nil: the system clock), or refused if
// err is not nil. settle, which may be nil, is called at most once, with what
// the reservation really cost: 0 for a Cancel.
func NewReservation(c Clock, delay time.Duration, err error, settle func(actual int)) *Reservation {
	if err != nil {
		return refused(err)
	}
	r := &Reservation{time: newTimeline(c), at: int64(max(delay, 0))}
	if settle != nil {
		r.settle = func(_, actual int64) { settle(int(actual)) }
	}
	return r
}

func refused(err error) *Reservation { return &Reservation{err: err} }

// OK reports whether the units are booked.
func (r *Reservation) OK() bool { return r.Err() == nil }

// Err returns why the units are not booked: ErrExceedsLimit, ErrQueueFull or
// ErrWaitTooLong. It returns nil if they are.
func (r *Reservation) Err() error {
	if r.err == nil && r.time == (timeline{}) {
		return ErrClosed
	}
	return r.err
}

// Delay returns the time from now until the units may act: 0 once they may,
// Never if they are not booked.
func (r *Reservation) Delay() time.Duration {
	if !r.OK() {
		return Never
	}
	return time.Duration(max(0, r.at-r.time.now()))
}

// Cancel gives the units back and does nothing once their moment has come.
// All of them come back when nothing was booked behind them, and what the
// bound permits otherwise; see each algorithm. Only the first Cancel or Settle
// counts.
func (r *Reservation) Cancel() { r.cancel() }

// cancel reports false when the moment has come.
func (r *Reservation) cancel() bool {
	if !r.OK() {
		return true
	}
	now := r.time.now()
	if now >= r.at {
		return false
	}
	r.correct(now, 0)
	return true
}

// Settle corrects the booking to what the work really cost, before or after
// its moment. Less gives the difference back, as far as the bound permits and
// into the window that was charged; more is charged as debt that later work
// waits for. A negative actual is ignored, and debt saturates. Only the first
// Cancel or Settle counts.
func (r *Reservation) Settle(actual int) {
	if r.OK() && actual >= 0 {
		r.correct(r.time.now(), int64(actual))
	}
}

func (r *Reservation) correct(now, actual int64) {
	if r.settle != nil && r.state.CompareAndSwap(false, true) {
		r.settle(now, actual)
	}
}
