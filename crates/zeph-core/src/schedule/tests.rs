//! Tests of due times and claims.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use jiff::ToSpan as _;
use zeph_memory::Synchronous;

use super::*;

/// A clock that shows a fixed time until it is set.
struct Set(Mutex<Zoned>);

impl Clock for Set {
    fn now(&self) -> Zoned {
        self.0.lock().unwrap().clone()
    }
}

impl Set {
    fn to(&self, at: &str) {
        *self.0.lock().unwrap() = zoned(at);
    }

    fn on(&self, by: jiff::Span) {
        let now = self.now();
        *self.0.lock().unwrap() = now.checked_add(by).unwrap();
    }
}

fn zoned(text: &str) -> Zoned {
    text.parse().unwrap()
}

const MONDAY: &str = "2026-11-23T08:30:00[Europe/Berlin]";

/// Proves NAT-3: time expressions.
#[test]
fn time_expressions_are_parsed() {
    let now = zoned(MONDAY);
    let once = |said: &str, expect: &str| {
        let found = When::parse(said, &now);
        assert_eq!(
            found,
            Ok(When::Once(
                zoned(&format!("{expect}[Europe/Berlin]")).timestamp()
            )),
            "{said}"
        );
    };
    once("in 10 minutes", "2026-11-23T08:40:00");
    once("In 10 Minutes", "2026-11-23T08:40:00");
    once("in 90s", "2026-11-23T08:31:30");
    once("in an hour", "2026-11-23T09:30:00");
    once("in 2 days", "2026-11-25T08:30:00");
    once("in a week", "2026-11-30T08:30:00");
    once("now", "2026-11-23T08:30:00");
    once("at 14:30", "2026-11-23T14:30:00");
    once("at 8:00", "2026-11-24T08:00:00");
    once("at 9 pm", "2026-11-23T21:00:00");
    once("at 12am", "2026-11-24T00:00:00");
    once("tomorrow at 9", "2026-11-24T09:00:00");
    once("2026-12-24 18:00", "2026-12-24T18:00:00");
    once("at 2026-12-24T18:00:30", "2026-12-24T18:00:30");
    once("2026-12-24T17:00:00Z", "2026-12-24T18:00:00");
    let again = |said: &str, expect: &str| {
        let found = When::parse(said, &now).unwrap_or_else(|error| panic!("{said}: {error}"));
        assert_eq!(found, When::Again(Cron::parse(expect).unwrap()), "{said}");
    };
    again("every day at 9", "0 9 * * *");
    again("every day at 9:05pm", "5 21 * * *");
    again("every day", "0 0 * * *");
    again("every monday at 9:30", "30 9 * * 1");
    again("every mondays at 9", "0 9 * * 1");
    again("every sun", "0 0 * * 0");
    again("every weekday at 17", "0 17 * * 1-5");
    again("every 15 minutes", "*/15 * * * *");
    again("every 2 hours", "0 */2 * * *");
    again("every hour", "0 * * * *");
    again("@daily", "0 0 * * *");
    again("@yearly", "0 0 1 1 *");
    again("*/5  9-17 * * 1-5", "*/5 9-17 * * 1-5");
    for said in [
        "",
        "soon",
        "in",
        "in minutes",
        "in -5 minutes",
        "in 5 fortnights",
        "every",
        "every blue moon",
        "every mondayss",
        "every day at 25",
        "at 9:99",
        "2026-12-24",
        "in 99999999999999999999 days",
        "in 9223372036854775807 weeks",
    ] {
        assert!(
            matches!(When::parse(said, &now), Err(WhenError::Unknown(_))),
            "{said}: {:?}",
            When::parse(said, &now)
        );
    }
    assert!(matches!(
        When::parse("2020-01-01 09:00", &now),
        Err(WhenError::Past(_))
    ));
    assert!(matches!(
        When::parse("in 9000 days", &now),
        Err(WhenError::Far(_))
    ));
    assert!(matches!(
        When::parse("every 7 minutes", &now),
        Err(WhenError::Uneven(_))
    ));
    assert!(matches!(
        When::parse("61 * * * *", &now),
        Err(WhenError::Cron(_))
    ));
}

/// Proves NAT-3: the five fields of cron.
#[test]
fn cron_expressions_are_parsed() {
    let check = |text: &str, after: &str, expect: &[&str]| {
        let cron = Cron::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let after = zoned(&format!("{after}[UTC]"));
        let mut at = after.timestamp();
        let found: Vec<String> = expect
            .iter()
            .map(|_| {
                at = cron.next(at, &TimeZone::UTC).unwrap();
                at.to_zoned(TimeZone::UTC)
                    .strftime("%Y-%m-%dT%H:%M")
                    .to_string()
            })
            .collect();
        assert_eq!(found, expect, "{text}");
    };
    check(
        "0 9 * * *",
        "2026-01-01T09:00",
        &["2026-01-02T09:00", "2026-01-03T09:00"],
    );
    check(
        "*/20 8,10 * * *",
        "2026-01-01T08:30",
        &["2026-01-01T08:40", "2026-01-01T10:00"],
    );
    check(
        "5/20 0 * * *",
        "2026-01-01T00:00",
        &["2026-01-01T00:05", "2026-01-01T00:25", "2026-01-01T00:45"],
    );
    check(
        "0 0 29 2 *",
        "2026-01-01T00:00",
        &["2028-02-29T00:00", "2032-02-29T00:00"],
    );
    check(
        "0 0 31 * *",
        "2026-04-01T00:00",
        &["2026-05-31T00:00", "2026-07-31T00:00"],
    );
    // If both days are given, either suffices; with a `*` both must match.
    check(
        "0 0 13 * fri",
        "2026-02-01T00:00",
        &["2026-02-06T00:00", "2026-02-13T00:00"],
    );
    check(
        "0 0 13 * *",
        "2026-02-01T00:00",
        &["2026-02-13T00:00", "2026-03-13T00:00"],
    );
    check("0 0 * * 7", "2026-02-01T12:00", &["2026-02-08T00:00"]);
    check(
        "0 0 1 jan-mar *",
        "2026-02-02T00:00",
        &["2026-03-01T00:00", "2027-01-01T00:00"],
    );
    // Times that occur once in 28 or 40 years.
    check(
        "0 0 29 2 */7",
        "2026-01-01T00:00",
        &["2032-02-29T00:00", "2060-02-29T00:00"],
    );
    check("0 0 29 2 */7", "2088-03-01T00:00", &["2128-02-29T00:00"]);
    check(
        "0 0 30,31 2,apr *",
        "2026-01-01T00:00",
        &["2026-04-30T00:00"],
    );
    check(
        "0 12 * * fri-sat",
        "2026-02-01T00:00",
        &["2026-02-06T12:00", "2026-02-07T12:00", "2026-02-13T12:00"],
    );
    check("0 0 * * sun,7,0", "2026-02-01T12:00", &["2026-02-08T00:00"]);
    check("0 0 * * 5-7", "2026-02-07T12:00", &["2026-02-08T00:00"]);
    check(
        "0-59/30 23 * * *",
        "2026-02-07T23:10",
        &["2026-02-07T23:30"],
    );
    check("59 23 31 12 *", "2026-12-31T23:59", &["2027-12-31T23:59"]);
    for text in [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "* * 30 2 *",
        "* * 31 feb,apr,jun,sep,nov *",
        "*/61 * * * *",
        "*/-1 * * * *",
        "*/ * * * *",
        "/5 * * * *",
        "1/ * * * *",
        "-5 * * * *",
        "5- * * * *",
        "1-2-3 * * * *",
        "sat-sun * * * *",
        "* * * * sat-sun",
        "* * * * sunday",
        "* * L * *",
        "* * ? * *",
        "* * * * 5#3",
        "99999999999999999999 * * * *",
        "١ * * * *",
        "+1 * * * *",
        "1, * * * *",
    ] {
        assert!(Cron::parse(text).is_err(), "{text}");
    }
}

/// Proves NAT-3: when clocks change, a daily task is due once each day at any time of day, and a task of every few
/// minutes continues.
#[test]
fn daily_task_is_due_once_when_clocks_change() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let due = |text: &str, from: &str, to: &str| {
        let cron = Cron::parse(text).unwrap();
        let (mut at, end) = (
            zoned(&format!("{from}[Europe/Berlin]")).timestamp(),
            zoned(&format!("{to}[Europe/Berlin]")).timestamp(),
        );
        let mut found = Vec::new();
        while let Some(next) = cron.next(at, &zone).filter(|next| *next < end) {
            at = next;
            found.push(
                next.to_zoned(zone.clone())
                    .strftime("%m-%d %H:%M %:z")
                    .to_string(),
            );
        }
        found
    };
    // On 29 March 2026, 02:00 to 03:00 is skipped; on 25 October it occurs twice.
    assert_eq!(
        due("30 2 * * *", "2026-03-28T00:00", "2026-03-31T00:00"),
        [
            "03-28 02:30 +01:00",
            "03-29 03:30 +02:00",
            "03-30 02:30 +02:00"
        ]
    );
    assert_eq!(
        due("30 2 * * *", "2026-10-24T00:00", "2026-10-27T00:00"),
        [
            "10-24 02:30 +02:00",
            "10-25 02:30 +02:00",
            "10-26 02:30 +01:00"
        ]
    );
    assert_eq!(
        due("*/30 * * * *", "2026-03-29T01:15", "2026-03-29T04:15"),
        [
            "03-29 01:30 +01:00",
            "03-29 03:00 +02:00",
            "03-29 03:30 +02:00",
            "03-29 04:00 +02:00"
        ]
    );
    assert_eq!(
        due("*/30 * * * *", "2026-10-25T01:45", "2026-10-25T03:15"),
        [
            "10-25 02:00 +02:00",
            "10-25 02:30 +02:00",
            "10-25 02:00 +01:00",
            "10-25 02:30 +01:00",
            "10-25 03:00 +01:00"
        ]
    );
    // Once on every day of several years, for every half hour.
    for half in 0..48 {
        let text = format!("{} {} * * *", half % 2 * 30, half / 2);
        assert_eq!(
            due(&text, "2026-02-28T23:59", "2026-04-01T00:00").len(),
            31,
            "{text}"
        );
        assert_eq!(
            due(&text, "2026-09-30T23:59", "2026-11-01T00:00").len(),
            31,
            "{text}"
        );
    }
}

/// The due times of `text` in `zone` after `from`, until `to`.
fn due_in(zone: &str, text: &str, from: &str, to: &str) -> Vec<String> {
    let cron = Cron::parse(text).unwrap();
    let zone_name = zone;
    let zone = TimeZone::get(zone).unwrap();
    let local = |text: &str| zoned(&format!("{text}[{zone_name}]")).timestamp();
    let (mut at, end) = (local(from), local(to));
    let mut found = Vec::new();
    while let Some(next) = cron.next(at, &zone).filter(|next| *next < end) {
        at = next;
        let next = next.to_zoned(zone.clone());
        found.push(next.strftime("%m-%d %H:%M %:z").to_string());
    }
    found
}

/// Proves NAT-3: zones that change their clocks at other hours, by other amounts, or by a day.
#[test]
fn due_times_follow_the_clock_changes_of_any_zone() {
    let check = |zone, text, [from, to]: [&str; 2], expect: &[&str]| {
        assert_eq!(due_in(zone, text, from, to), expect, "{zone} {text}");
    };
    // 02:00 to 03:00 is skipped on 8 March 2026; 01:00 to 02:00 occurs twice on 1 November.
    let spring = ["2026-03-07T12:00", "2026-03-09T12:00"];
    check(
        "America/New_York",
        "0 2 * * *",
        spring,
        &["03-08 03:00 -04:00", "03-09 02:00 -04:00"],
    );
    let autumn = ["2026-10-31T12:00", "2026-11-02T12:00"];
    check(
        "America/New_York",
        "30 1 * * *",
        autumn,
        &["11-01 01:30 -04:00", "11-02 01:30 -05:00"],
    );
    check(
        "America/New_York",
        "0 1-3 * * *",
        autumn,
        &[
            "11-01 01:00 -04:00",
            "11-01 02:00 -05:00",
            "11-01 03:00 -05:00",
            "11-02 01:00 -05:00",
            "11-02 02:00 -05:00",
            "11-02 03:00 -05:00",
        ],
    );
    // The southern hemisphere: half an hour is skipped on 4 October 2026 and occurs twice on 5 April.
    check(
        "Australia/Lord_Howe",
        "15 2 * * *",
        ["2026-10-03T12:00", "2026-10-05T12:00"],
        &["10-04 02:45 +11:00", "10-05 02:15 +11:00"],
    );
    check(
        "Australia/Lord_Howe",
        "45 1 * * *",
        ["2026-04-04T12:00", "2026-04-06T12:00"],
        &["04-05 01:45 +11:00", "04-06 01:45 +10:30"],
    );
    // Midnight is skipped on 4 November 2018, and 23:00 occurred twice on 17 February.
    check(
        "America/Sao_Paulo",
        "0 0 * * *",
        ["2018-11-03T12:00", "2018-11-05T12:00"],
        &["11-04 01:00 -02:00", "11-05 00:00 -02:00"],
    );
    check(
        "America/Sao_Paulo",
        "30 23 * * sat",
        ["2018-02-17T12:00", "2018-02-24T12:00"],
        &["02-17 23:30 -02:00"],
    );
    check(
        "America/Sao_Paulo",
        "30 * * * *",
        ["2018-02-17T22:00", "2018-02-18T01:00"],
        &[
            "02-17 22:30 -02:00",
            "02-17 23:30 -02:00",
            "02-17 23:30 -03:00",
            "02-18 00:30 -03:00",
        ],
    );
    // A skipped day: its task is due one day later, together with the task of that day.
    check(
        "Pacific/Apia",
        "0 9 * * *",
        ["2011-12-29T00:00", "2012-01-01T00:00"],
        &["12-29 09:00 -10:00", "12-31 09:00 +14:00"],
    );
    // A zone without changes.
    check(
        "Asia/Kolkata",
        "30 2 * * *",
        ["2026-03-28T12:00", "2026-03-30T12:00"],
        &["03-29 02:30 +05:30", "03-30 02:30 +05:30"],
    );
}

/// Proves NAT-3: a single time that is skipped is due later by the skipped amount; of a time that occurs twice the
/// first is meant; delays are exact.
#[test]
fn single_time_in_a_clock_change_is_resolved() {
    let check = |now: &str, said: &str, expect: &str| {
        let now = zoned(&format!("{now}[Europe/Berlin]"));
        let Ok(When::Once(at)) = When::parse(said, &now) else {
            panic!("{said}: {:?}", When::parse(said, &now));
        };
        assert_eq!(shown(at, now.time_zone()), expect, "{said}");
    };
    check("2026-03-29T01:00", "at 2:30", "2026-03-29 03:30:00 +02:00");
    check(
        "2026-03-28T12:00",
        "tomorrow at 2:30",
        "2026-03-29 03:30:00 +02:00",
    );
    check(
        "2026-10-24T12:00",
        "2026-10-25 02:30",
        "2026-10-25 02:30:00 +02:00",
    );
    check(
        "2026-03-29T01:30",
        "in 1 hour",
        "2026-03-29 03:30:00 +02:00",
    );
    check("2026-03-28T12:00", "in 1 day", "2026-03-29 13:00:00 +02:00");
}

struct World {
    clock: Arc<Set>,
    store: Store,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("zeph.db"), Synchronous::Normal)
            .await
            .unwrap();
        Self {
            clock: Arc::new(Set(Mutex::new(zoned(MONDAY)))),
            store,
            _folder: folder,
        }
    }

    fn schedule(&self, run_missed: bool) -> Schedule {
        let config = SchedulerConfig {
            run_missed,
            ..SchedulerConfig::default()
        };
        Schedule::new(
            self.store.clone(),
            "/project".into(),
            Arc::clone(&self.clock) as _,
            config,
        )
    }
}

/// Proves NAT-3: a task is due once, at its time and in its project.
#[tokio::test]
async fn due_tasks_are_taken_once() {
    let world = World::new().await;
    let schedule = world.schedule(false);
    let once = schedule.add("once", "in 10 minutes").await.unwrap();
    let daily = schedule.add("daily", "every day at 8:40").await.unwrap();
    assert_eq!(schedule.take_due(&[]).await.unwrap(), None);
    world.clock.on(10.minutes());
    let other = Schedule::new(
        world.store.clone(),
        "/other".into(),
        Arc::clone(&world.clock) as _,
        SchedulerConfig::default(),
    );
    assert_eq!(other.take_due(&[]).await.unwrap(), None);
    let first = schedule.take_due(&[]).await.unwrap().unwrap();
    assert_eq!(first.task.id, once.id);
    let second = world.schedule(false).take_due(&[]).await.unwrap().unwrap();
    assert_eq!(second.task.id, daily.id);
    assert_eq!(schedule.take_due(&[]).await.unwrap(), None);
    schedule.end(first.run, RunState::Done, "").await.unwrap();
    schedule.end(second.run, RunState::Done, "").await.unwrap();
    let tasks = schedule.tasks().await.unwrap();
    assert_eq!(tasks.len(), 1);
    assert_eq!(
        tasks[0].next_at,
        Some(
            zoned("2026-11-24T08:40:00[Europe/Berlin]")
                .timestamp()
                .as_millisecond()
        )
    );
    assert_eq!(schedule.report().await.unwrap(), Vec::<String>::new());
    assert!(schedule.cancel(daily.id).await.unwrap());
    assert!(!schedule.cancel(daily.id).await.unwrap());
    assert!(!other.cancel(once.id).await.unwrap());
    world.clock.on(48.hours());
    assert_eq!(schedule.take_due(&[]).await.unwrap(), None);
}

/// Proves NAT-3: of two processes, one claims a due task.
#[tokio::test]
async fn one_time_is_claimed_once() {
    let world = World::new().await;
    let schedule = world.schedule(false);
    schedule.add("once", "now").await.unwrap();
    let task = schedule.tasks().await.unwrap().remove(0);
    let now = world.clock.now().timestamp().as_millisecond();
    let claim = || world.store.claim_run(&task, None, Some(now + 1), "", now);
    let (one, other) = tokio::join!(claim(), claim());
    assert_eq!(
        usize::from(one.unwrap().is_some()) + usize::from(other.unwrap().is_some()),
        1
    );
    assert!(claim().await.unwrap().is_none());
}

/// Proves NAT-3: a missed time is reported once and not run late, unless that is configured.
#[tokio::test]
async fn missed_times_are_reported() {
    let world = World::new().await;
    let schedule = world.schedule(false);
    schedule.add("once", "in 10 minutes").await.unwrap();
    schedule.add("hourly", "every hour").await.unwrap();
    world.clock.to("2026-11-23T12:30:00[Europe/Berlin]");
    assert_eq!(schedule.take_due(&[]).await.unwrap(), None);
    let told = schedule.report().await.unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("task 1 of 2026-11-23 08:40:00 +01:00 was missed"),
        "{told:?}"
    );
    assert!(
        told[1].contains("was missed") && told[1].contains("(and 3 times more since)"),
        "{told:?}"
    );
    assert_eq!(schedule.report().await.unwrap(), Vec::<String>::new());
    assert_eq!(schedule.runs(10).await.unwrap().len(), 2);
    world.clock.to("2026-11-23T13:00:30[Europe/Berlin]");
    assert_eq!(
        schedule.take_due(&[]).await.unwrap().unwrap().task.prompt,
        "hourly"
    );

    let late = world.schedule(true);
    late.add("late", "in 10 minutes").await.unwrap();
    world.clock.to("2026-11-24T09:00:00[Europe/Berlin]");
    let mut taken = Vec::new();
    while let Some(due) = late.take_due(&[]).await.unwrap() {
        taken.push(due.task.prompt);
    }
    taken.sort();
    assert_eq!(taken, ["hourly", "late"]);
}

/// Proves NAT-3: a missed time is reported once, to the first process that asks.
#[tokio::test]
async fn missed_time_is_reported_by_one_process() {
    let world = World::new().await;
    for at in ["in 10 minutes", "in 11 minutes", "every hour"] {
        world.schedule(false).add("x", at).await.unwrap();
    }
    world.clock.on(24.hours());
    let (one, other) = (world.schedule(false), world.schedule(false));
    let (one, other) = tokio::join!(one.report(), other.report());
    assert_eq!(one.unwrap().len() + other.unwrap().len(), 3);
}

/// Proves NAT-3: a clock that is set back makes no task due twice; a clock that was far ahead is corrected.
#[tokio::test]
async fn clock_set_back_makes_no_task_due_twice() {
    let world = World::new().await;
    let schedule = world.schedule(false);
    schedule.add("hourly", "every hour").await.unwrap();
    schedule.add("daily", "every day at 9").await.unwrap();
    let due = async || -> Vec<(String, String)> {
        let mut taken = Vec::new();
        while let Some(due) = schedule.take_due(&[]).await.unwrap() {
            schedule.end(due.run, RunState::Done, "").await.unwrap();
            taken.push((
                due.task.prompt,
                schedule.shown(due.task.next_at.unwrap())[11..16].to_owned(),
            ));
        }
        taken.sort();
        taken
    };
    let pair = |prompt: &str, at: &str| (prompt.to_owned(), at.to_owned());
    world.clock.to("2026-11-23T09:00:10[Europe/Berlin]");
    assert_eq!(
        due().await,
        [pair("daily", "09:00"), pair("hourly", "09:00")]
    );
    // A few minutes back, and forward to the same time.
    world.clock.to("2026-11-23T08:58:00[Europe/Berlin]");
    assert_eq!(due().await, []);
    world.clock.to("2026-11-23T09:00:10[Europe/Berlin]");
    assert_eq!(due().await, []);
    world.clock.to("2026-11-23T10:00:10[Europe/Berlin]");
    assert_eq!(due().await, [pair("hourly", "10:00")]);
    // Years ahead by mistake: this is reported. After the correction the tasks continue, without repeated times.
    world.clock.to("2031-01-01T00:30:00[Europe/Berlin]");
    assert_eq!(schedule.report().await.unwrap().len(), 2);
    world.clock.to("2026-11-23T08:30:00[Europe/Berlin]");
    assert_eq!(due().await, []);
    let next = schedule.tasks().await.unwrap();
    let next: Vec<_> = next
        .iter()
        .map(|task| (&*task.prompt, schedule.shown(task.next_at.unwrap())))
        .collect();
    // 9:00 and 10:00 were run; 11:00 was reported.
    assert_eq!(
        next,
        [
            ("hourly", "2026-11-23 12:00:00 +01:00".to_owned()),
            ("daily", "2026-11-25 09:00:00 +01:00".to_owned()),
        ]
    );
    world.clock.to("2026-11-23T09:00:10[Europe/Berlin]");
    assert_eq!(due().await, []);
    world.clock.to("2026-11-23T10:00:10[Europe/Berlin]");
    assert_eq!(due().await, []);
    world.clock.to("2026-11-23T12:00:10[Europe/Berlin]");
    assert_eq!(due().await, [pair("hourly", "12:00")]);
}

/// Proves NAT-3: no process claims a task that is running; the times in between are reported.
#[tokio::test]
async fn task_does_not_overlap_itself() {
    let world = World::new().await;
    let schedule = world.schedule(false);
    let task = schedule.add("slow", "* * * * *").await.unwrap();
    world.clock.on(1.minute());
    let due = schedule.take_due(&[]).await.unwrap().unwrap();
    for _ in 0..6 {
        world.clock.on(30.seconds());
        assert!(schedule.renew(due.run).await.unwrap());
        world.clock.on(30.seconds());
        assert!(schedule.renew(due.run).await.unwrap());
        let waits = schedule.take_due(&[task.id]).await.unwrap();
        let other = world.schedule(false).take_due(&[]).await.unwrap();
        assert_eq!((waits, other), (None, None));
    }
    // Neither does a process that read the tasks before the run began.
    let task = schedule.tasks().await.unwrap().remove(0);
    let now = world.clock.now().timestamp().as_millisecond();
    let claim = world.store.claim_run(&task, None, Some(now + 1), "", now);
    assert_eq!(claim.await.unwrap(), None);
    assert_eq!(schedule.tasks().await.unwrap(), [task]);
    schedule.end(due.run, RunState::Done, "").await.unwrap();
    let told = schedule.report().await.unwrap();
    // Each minute from 8:32 to 8:37.
    let expect = |told: &str, first: &str| {
        assert!(
            told.starts_with(&format!("task 1 of 2026-11-23 {first}:00")),
            "{told}"
        );
        assert!(
            told.contains("was missed") && told.contains("(and 2 times more since)"),
            "{told}"
        );
    };
    assert_eq!(told.len(), 2, "{told:?}");
    expect(&told[0], "08:32");
    expect(&told[1], "08:35");
}

/// Proves NAT-3: a run that lost its process is reported and not repeated.
#[tokio::test]
async fn dead_run_is_interrupted() {
    let world = World::new().await;
    let schedule = world.schedule(true);
    schedule.add("once", "now").await.unwrap();
    let due = schedule.take_due(&[]).await.unwrap().unwrap();
    world.clock.on(50.seconds());
    assert!(schedule.renew(due.run).await.unwrap());
    world.clock.on(50.seconds());
    assert_eq!(schedule.report().await.unwrap(), Vec::<String>::new());
    schedule.place(due.run, "s1").await.unwrap();
    world.clock.on(20.seconds());
    let told = schedule.report().await.unwrap();
    assert!(
        told[0].contains("was interrupted") && told[0].contains("session s1"),
        "{told:?}"
    );
    assert!(!schedule.renew(due.run).await.unwrap());
    assert_eq!(schedule.take_due(&[]).await.unwrap(), None);
    // The end of a run after another process took it over changes nothing.
    schedule.end(due.run, RunState::Done, "").await.unwrap();
    assert_eq!(
        schedule.runs(1).await.unwrap()[0].state,
        RunState::Interrupted
    );
}

/// Proves NAT-3: invalid input is refused with a reason, and sizes are limited.
#[tokio::test]
async fn invalid_tasks_are_refused() {
    let world = World::new().await;
    let schedule = world.schedule(false);
    let refused =
        async |task: &str, when: &str| schedule.add(task, when).await.unwrap_err().to_string();
    assert!(refused(" ", "now").await.contains("got an empty text"));
    assert!(refused("x", "soon").await.contains("\"every day at 9\""));
    assert!(
        refused(&"x".repeat(20_000), "now")
            .await
            .contains("at most 16384 bytes")
    );
    for _ in 0..100 {
        schedule.add("x", "in 1 hour").await.unwrap();
    }
    assert!(
        refused("x", "in 1 hour")
            .await
            .contains("100 tasks are already scheduled")
    );
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(said in "[a-z0-9*/,: @-]{0,40}|.{0,40}") {
            let now = zoned(MONDAY);
            if let Ok(when) = When::parse(&said, &now) {
                let _ = when.next(now.timestamp(), now.time_zone());
            }
        }

        /// The result is the first matching minute, as a simple search finds it.
        #[test]
        fn next_cron_time_is_the_first_match(
            minute in 0..60i8, hour in 0..24i8, step in 1..=12usize, day in 1..=31i8, weekday in 0..7i8,
            kind in 0..4, from in 1_700_000_000i64..1_900_000_000,
        ) {
            let (hours, of_month, of_week) = match kind {
                0 => (format!("*/{step}"), "*".to_owned(), "*".to_owned()),
                1 => (hour.to_string(), day.to_string(), "*".to_owned()),
                2 => (hour.to_string(), "*".to_owned(), weekday.to_string()),
                _ => (hour.to_string(), day.to_string(), weekday.to_string()),
            };
            let cron = Cron::parse(&format!("{minute} {hours} {of_month} * {of_week}")).unwrap();
            let after = Timestamp::from_second(from).unwrap();
            let fits = |at: &Zoned| {
                at.minute() == minute
                    && match kind {
                        0 => usize::try_from(at.hour()).unwrap() % step == 0,
                        _ => at.hour() == hour,
                    }
                    && match kind {
                        0 => true,
                        1 => at.day() == day,
                        2 => at.weekday().to_sunday_zero_offset() == weekday,
                        _ => at.day() == day || at.weekday().to_sunday_zero_offset() == weekday,
                    }
            };
            let first = Timestamp::from_second((from / 60 + 1) * 60).unwrap().to_zoned(TimeZone::UTC);
            let mut at = first.clone();
            while !fits(&at) {
                // Steps of a minute in the first hour, then of an hour.
                let by = if at.minute() == minute { 60 } else { 1 };
                at = at.checked_add(by.minutes()).unwrap();
            }
            prop_assert_eq!(cron.next(after, &TimeZone::UTC), Some(at.timestamp()));
        }

        #[test]
        fn next_cron_time_is_later(minute in 0..60, hour in 0..24, day in 1..=28, from in 1_700_000_000i64..1_900_000_000) {
            let after = Timestamp::from_second(from).unwrap();
            let zone = TimeZone::get("America/New_York").unwrap();
            let cron = Cron::parse(&format!("{minute} {hour} {day} * *")).unwrap();
            let next = cron.next(after, &zone).unwrap();
            prop_assert!(next > after);
            prop_assert!(next.as_second() - from <= 32 * 24 * 3600);
        }
    }
}
