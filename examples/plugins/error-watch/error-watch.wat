;; A plugin as component text. It counts every event that it sees, writes the whole of each `error` to the log,
;; and at each `agent_end` the number of events so far. Its types are those of wit/prx-hook.wit in
;; subscribers/runtimes.
(component
  (import "prx:host/log@0.1.0" (instance $log
    (type $names (enum "trace" "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $names)))
    (export "log" (func (param "level" $level) (param "message" string)))))

  ;; The memory comes first: both directions of every call go through it.
  (core module $heap
    (memory (export "memory") 1)

    ;; Below 1,024 lie the constants, the result and a number's digits. What a call brings comes behind them,
    ;; one piece after another, and is all forgotten when the call has returned.
    (global $next (mut i32) (i32.const 1024))

    (func (export "realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32)
      (result i32)
      (local $at i32) (local $missing i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (local.set $missing (i32.sub
        (i32.shr_u (i32.add (global.get $next) (i32.const 65535)) (i32.const 16))
        (memory.size)))
      (if (i32.gt_s (local.get $missing) (i32.const 0)) (then
        (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1)) (then
          (unreachable)))))
      (local.get $at))

    (func (export "forget") (param $result i32)
      (global.set $next (i32.const 1024))))
  (core instance $heap (instantiate $heap))

  (core func $log (canon lower (func $log "log") (memory (core memory $heap "memory"))))

  (core module $plugin
    (import "heap" "memory" (memory 1))
    (import "host" "log" (func $log (param $level i32) (param $text i32) (param $length i32)))

    (data (i32.const 0) "error")
    (data (i32.const 16) "agent_end")
    (data (i32.const 32) "events so far: ")
    (data (i32.const 96) "there is no payload")

    ;; Where the result lies: its case, then the error's text and length.
    (global $result i32 (i32.const 160))
    (global $seen (mut i32) (i32.const 0))

    (func $same (param $a i32) (param $a-length i32) (param $b i32) (param $b-length i32) (result i32)
      (if (i32.ne (local.get $a-length) (local.get $b-length)) (then
        (return (i32.const 0))))
      (loop $next
        (if (i32.eqz (local.get $a-length)) (then
          (return (i32.const 1))))
        (if (i32.ne (i32.load8_u (local.get $a)) (i32.load8_u (local.get $b))) (then
          (return (i32.const 0))))
        (local.set $a (i32.add (local.get $a) (i32.const 1)))
        (local.set $b (i32.add (local.get $b) (i32.const 1)))
        (local.set $a-length (i32.sub (local.get $a-length) (i32.const 1)))
        (br $next))
      (unreachable))

    ;; Writes "events so far: " and the number, its digits from the last to the first.
    (func $tell
      (local $rest i32) (local $digits i32) (local $at i32)
      (local.set $rest (global.get $seen))
      (loop $count
        (local.set $digits (i32.add (local.get $digits) (i32.const 1)))
        (local.set $rest (i32.div_u (local.get $rest) (i32.const 10)))
        (br_if $count (local.get $rest)))
      (local.set $rest (global.get $seen))
      (local.set $at (i32.add (i32.const 46) (local.get $digits)))
      (loop $write
        (i32.store8 (local.get $at)
          (i32.add (i32.const 48) (i32.rem_u (local.get $rest) (i32.const 10))))
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (local.set $rest (i32.div_u (local.get $rest) (i32.const 10)))
        (br_if $write (local.get $rest)))
      (call $log (i32.const 2) (i32.const 32) (i32.add (i32.const 15) (local.get $digits))))

    (func (export "on-event")
      (param $event i32) (param $event-length i32) (param $payload i32) (param $payload-length i32)
      (result i32)
      (global.set $seen (i32.add (global.get $seen) (i32.const 1)))
      (if (i32.eqz (local.get $payload-length)) (then
        (i32.store8 (global.get $result) (i32.const 1))
        (i32.store offset=4 (global.get $result) (i32.const 96))
        (i32.store offset=8 (global.get $result) (i32.const 19))
        (return (global.get $result))))
      (if (call $same (local.get $event) (local.get $event-length) (i32.const 0) (i32.const 5)) (then
        (call $log (i32.const 3) (local.get $payload) (local.get $payload-length))))
      (if (call $same (local.get $event) (local.get $event-length) (i32.const 16) (i32.const 9)) (then
        (call $tell)))
      (i32.store8 (global.get $result) (i32.const 0))
      (global.get $result)))
  (core instance $plugin (instantiate $plugin
    (with "heap" (instance $heap))
    (with "host" (instance (export "log" (func $log))))))

  (func $on-event (param "event" string) (param "payload-json" string) (result (result (error string)))
    (canon lift (core func $plugin "on-event")
      (memory (core memory $heap "memory"))
      (realloc (core func $heap "realloc"))
      (post-return (core func $heap "forget"))))
  (instance $hooks (export "on-event" (func $on-event)))
  (export "hooks" (instance $hooks)))
