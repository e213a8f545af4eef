// The memory that a thread shares with the main thread: the cells of one Int32Array.
//
// RETIRED     not 0: begin no call any more
// BEGUN       how many calls it has taken up; counted before it looks at RETIRED, so that whoever has set that
//             knows from this count what was not begun
// RUNNING     the number of the hook whose code runs now, or 0
// ANSWERED    the last question that it has answered
// STEPS       how many messages it has taken up
// HEAP_KIB    what its heap held when that was looked at last

export const CELL = { RETIRED: 0, BEGUN: 1, RUNNING: 2, ANSWERED: 3, HEAP_KIB: 4, STEPS: 5 };
export const CELLS = 8;
