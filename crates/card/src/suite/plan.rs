//! What of a suite is done: which tests, at which points, with which inputs, and what has to come
//! back.

use tapstone_apdu::CommandApdu;
use toml::Spanned;

use super::file::{Group, StepText, SuiteError, SuiteFile, SuiteText, Test};
use super::job::{DeclaredEffect, JobCase, Piece, Secret, Split, Step, SuiteJob};
use super::material::{Answer, Maker, Material};
use super::point::Point;
use super::rehearsal::Rehearsal;
use super::template::{header_bytes, hexadecimal, parse};
use crate::controller::CaseDescription;

/// What the user asked for and allows.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Tests by name, or the start of a name before a star; empty: all.
    pub tests: Vec<String>,
    /// The PIN, as the card takes it.
    pub pin: Option<Secret>,
    /// Objects may be made, changed and removed as the suite says.
    pub allow_writes: bool,
    /// Operations of each case, at most.
    pub rounds: u64,
    /// Seed of the inputs, of the orders of rounds, and of the pauses between them.
    pub seed: u64,
}

/// A suite with everything settled: what runs, in which order, how often.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What the worker gets.
    pub job: SuiteJob,
    /// A case for each lane of the job.
    pub cases: Vec<PlannedCase>,
    /// Tests that are left out, with the reason.
    pub left_out: Vec<(String, String)>,
    /// What will change on the card, a sentence each.
    pub changes: Vec<String>,
}

/// A case, with what only the controller knows of it.
#[derive(Clone, Debug, Default)]
pub struct PlannedCase {
    /// What it is called and what its figures mean.
    pub case: CaseDescription,
    /// The name of the test in the suite.
    pub test: String,
    /// Where it stands in what the test varies.
    pub point: Point,
    /// The inputs with what is expected for each; as many as the lane has.
    pub materials: Vec<Material>,
    /// How an answer is judged; `None` where only its status word is.
    pub answer: Option<Answer>,
    /// A card that cannot do it has no case.
    pub optional: bool,
}

/// Different inputs that a lane takes in turn.
const INPUTS: u64 = 16;

/// Writes to one cell in a run, at most: a thousandth of what EEPROM endures at the least.
const MOST_CYCLES: u64 = 1000;

impl Plan {
    /// Settles a suite.
    ///
    /// # Errors
    /// With the line of what is wrong with the suite, or when a test named is not there.
    pub fn from_suite(
        source: &SuiteText,
        suite: &SuiteFile,
        wishes: &Wishes,
    ) -> Result<Self, SuiteError> {
        let mut planning = Planning { source, suite, wishes, plan: Self::default() };
        planning.values()?;
        planning.plan.job.prepare.extend(planning.selection()?);
        planning.plan.job.allow_writes = wishes.allow_writes;
        planning.plan.job.seed = wishes.seed;
        let tests = planning.chosen()?;
        if let Some(most) = &suite.most_rounds
            && wishes.rounds > u64::from(*most.get_ref())
        {
            let what = format!("at most {} rounds: its memory may wear out", most.get_ref());
            return Err(source.error(most.span(), what));
        }
        let (mut needed, mut included): (Vec<&Group>, Vec<&Test>) = Default::default();
        for test in tests {
            if let Some(why) = planning.forbidden(test)? {
                planning.plan.left_out.push((test.name.get_ref().clone(), why));
                continue;
            }
            for group in planning.groups(test)? {
                if !needed.iter().any(|known| std::ptr::eq(*known, group)) {
                    needed.push(group);
                }
            }
            planning.test(test)?;
            included.push(test);
        }
        // In the order of the file, whichever test asked first.
        let is_needed = |of: &&Group| needed.iter().any(|it| std::ptr::eq(*it, *of));
        let groups: Vec<&Group> = suite.prepare.iter().filter(is_needed).collect();
        for group in &groups {
            planning.group(group)?;
        }
        planning.one_temperature()?;
        planning.unique_cases()?;
        planning.rehearse(&groups, &included)?;
        Ok(planning.plan)
    }
}

struct Planning<'a> {
    source: &'a SuiteText,
    suite: &'a SuiteFile,
    wishes: &'a Wishes,
    plan: Plan,
}

impl<'a> Planning<'a> {
    fn values(&mut self) -> Result<(), SuiteError> {
        for (name, text) in &self.suite.values {
            let bytes = hexadecimal(text.get_ref()).map_err(|_| {
                self.source.error(text.span(), format!("values.{name} is not hexadecimal"))
            })?;
            self.plan.job.values.push((name.clone(), bytes));
        }
        let Some(pin) = &self.wishes.pin else { return Ok(()) };
        let length = usize::from(self.suite.pin_bytes.unwrap_or(0));
        // A PIN that cannot be right is not worth one of the card's tries.
        if pin.expose().is_empty() || length > 0 && pin.expose().len() > length {
            let what = format!(
                "the PIN that was given has {} bytes, and the card takes 1 to {length}",
                pin.expose().len()
            );
            return Err(self.source.whole(what));
        }
        self.plan.job.pin = Some(Secret::padded(pin.expose(), length));
        Ok(())
    }

    /// SELECT of the suite's application.
    fn selection(&self) -> Result<Option<Step>, SuiteError> {
        let Some(text) = &self.suite.application else { return Ok(None) };
        let aid = hexadecimal(text.get_ref())
            .map_err(|_| self.source.error(text.span(), "application is not hexadecimal"))?;
        if !(5..=16).contains(&aid.len()) {
            let what = format!("application: an AID has 5 to 16 bytes, not {}", aid.len());
            return Err(self.source.error(text.span(), what));
        }
        let CommandApdu { cla, ins, p1, p2, data, .. } = CommandApdu::select(&aid);
        Ok(Some(Step {
            name: "SELECT".to_owned(),
            header: vec![Piece::Bytes(vec![cla, ins, p1, p2])],
            data: vec![Piece::Bytes(data)],
            expected: Some(256),
            expect: vec![0x9000],
            ..Step::default()
        }))
    }

    fn chosen(&self) -> Result<Vec<&'a Test>, SuiteError> {
        // With or without the `card.` that every name begins with.
        let matches = |wish: &str, name: &str| {
            let short = name.strip_prefix("card.").unwrap_or(name);
            match wish.strip_suffix('*') {
                Some(start) => name.starts_with(start) || short.starts_with(start),
                None => name == wish || short == wish,
            }
        };
        for wish in &self.wishes.tests {
            if !self.suite.test.iter().any(|test| matches(wish, test.name.get_ref())) {
                let names: Vec<&str> =
                    self.suite.test.iter().map(|test| test.name.get_ref().as_str()).collect();
                let what = format!("no test \"{wish}\"; there are {}", names.join(", "));
                return Err(self.source.whole(what));
            }
        }
        let wishes = &self.wishes.tests;
        let wanted = |test: &&Test| {
            wishes.is_empty() || wishes.iter().any(|wish| matches(wish, test.name.get_ref()))
        };
        Ok(self.suite.test.iter().filter(wanted).collect())
    }

    /// A value that stands twice in `vary` would make two cases of one name.
    fn unique_cases(&self) -> Result<(), SuiteError> {
        let mut names: Vec<&str> =
            self.plan.cases.iter().map(|planned| planned.case.operation.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(self.source.whole(format!("two cases are called \"{}\"", pair[0]))),
            None => Ok(()),
        }
    }

    fn groups(&self, test: &Test) -> Result<Vec<&'a Group>, SuiteError> {
        let find = |need: &Spanned<String>| {
            let found = self.suite.prepare.iter().find(|of| of.name.get_ref() == need.get_ref());
            let what =
                || format!("needs: nothing under [[prepare]] is called \"{}\"", need.get_ref());
            found.ok_or_else(|| self.source.error(need.span(), what()))
        };
        test.needs.iter().map(find).collect()
    }

    /// Why a test is left out.
    fn forbidden(&self, test: &Test) -> Result<Option<String>, SuiteError> {
        let groups = self.groups(test)?;
        let of_groups =
            || groups.iter().flat_map(|group| group.steps.iter().chain(&group.clean_up));
        let of_test = || test.before.iter().chain(&test.measure).chain(&test.after);
        let pin = of_groups().chain(of_test()).any(StepText::gives_pin);
        let writes = test.writes.iter().chain(groups.iter().filter_map(|it| it.writes.as_ref()));
        let by_steps = of_groups().chain(of_test()).filter_map(StepText::writes);
        if !self.wishes.allow_writes
            && let Some(what) = writes.map(String::as_str).chain(by_steps).next()
        {
            return Ok(Some(format!("writes to the card ({what}): allow it with --allow-writes")));
        }
        if pin && self.wishes.pin.is_none() {
            return Ok(Some("needs the PIN: name one with --pin-file".to_owned()));
        }
        if let Some(cycles) = test.write_cycles {
            let points = self.points(test).len() as u64;
            // One more operation finds out whether the card can do it.
            let most = MOST_CYCLES / u64::from(cycles.max(1)) / points.max(1);
            if self.wishes.rounds + 1 > most {
                return Ok(Some(format!(
                    "{} rounds would write more than {MOST_CYCLES} times to the same cells: \
                     at most {} rounds",
                    self.wishes.rounds,
                    most.saturating_sub(1)
                )));
            }
        }
        Ok(None)
    }

    fn group(&mut self, group: &Group) -> Result<(), SuiteError> {
        let steps = self.steps(&group.steps, group.writes.as_ref())?;
        let clean_up = self.steps(&group.clean_up, group.writes.as_ref())?;
        self.no_pin(&group.clean_up, &clean_up)?;
        self.plan.job.prepare.extend(steps);
        // What was made last is removed first.
        self.plan.job.clean_up.splice(0..0, clean_up);
        let own = group.steps.iter().chain(&group.clean_up).filter_map(StepText::writes);
        self.announce(group.writes.as_deref().into_iter().chain(own));
        Ok(())
    }

    /// What will change, each once.
    fn announce<'t>(&mut self, changes: impl Iterator<Item = &'t str>) {
        for change in changes {
            if !self.plan.changes.iter().any(|known| known == change) {
                self.plan.changes.push(change.to_owned());
            }
        }
    }

    fn points(&self, test: &Test) -> Vec<Point> {
        let fixed = test.input.as_ref().and_then(|input| input.get_ref().bytes).unwrap_or(0);
        let or = |list: &[u16], otherwise: u16| {
            if list.is_empty() { vec![otherwise] } else { list.to_vec() }
        };
        let bytes = if test.vary.bytes.is_empty() { vec![fixed] } else { test.vary.bytes.clone() };
        let mut points = Vec::new();
        for bytes in bytes {
            for set_ups in or(&test.vary.set_ups, 1) {
                for operations in or(&test.vary.operations, 1) {
                    points.push(Point { bytes, set_ups, operations });
                }
            }
        }
        points
    }

    fn test(&mut self, test: &Test) -> Result<(), SuiteError> {
        let steps = |texts: &[StepText]| self.steps(texts, test.writes.as_ref());
        let (before, measure, after) =
            (steps(&test.before)?, steps(&test.measure)?, steps(&test.after)?);
        if measure.is_empty() && !test.cold {
            return Err(self.source.error(test.name.span(), "measure: no step to measure"));
        }
        self.no_pin(&test.after, &after)?;
        let answer = self.answer(test)?;
        let points = self.points(test);
        let varied = points.len() > 1;
        let cycles = test.write_cycles.map(|cycles| {
            let all = u64::from(cycles) * (self.wishes.rounds + 1) * points.len() as u64;
            format!("{all} writes to the same cells ({})", test.name.get_ref())
        });
        let own = test.before.iter().chain(&test.measure).chain(&test.after);
        let own = own.filter_map(StepText::writes);
        self.announce(test.writes.as_deref().into_iter().chain(own).chain(cycles.as_deref()));
        for point in points {
            let materials = self.materials(test, point)?;
            let name = test.name.get_ref();
            let operation = if varied { point.label(name, &test.vary) } else { name.clone() };
            let connect = ["SCardConnect", "SCardBeginTransaction"].map(str::to_owned);
            let connect = test.cold.then_some(connect).into_iter().flatten();
            let names = measure.iter().map(|step| step.name.clone());
            self.plan.cases.push(PlannedCase {
                case: CaseDescription {
                    operation,
                    message_bytes: (point.bytes > 0).then_some(u64::from(point.bytes)),
                    has_rate: false,
                    steps: connect.chain(names).collect(),
                },
                test: name.clone(),
                point,
                answer: answer.clone(),
                optional: test.optional,
                materials: materials.clone(),
            });
            self.plan.job.lanes.push(JobCase {
                before: before.clone(),
                measure: measure.clone(),
                after: after.clone(),
                cold: test.cold,
                inputs: materials.into_iter().map(|material| material.input).collect(),
                set_ups: point.set_ups,
                operations: point.operations,
            });
        }
        Ok(())
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        let values = &self.plan.job.values;
        values.iter().find(|(known, _)| known == name).map(|(_, bytes)| &bytes[..])
    }

    fn materials(&self, test: &Test, point: Point) -> Result<Vec<Material>, SuiteError> {
        let Some(input) = &test.input else { return Ok(vec![Material::default()]) };
        let value = |name: &str| self.value(name).map(<[u8]>::to_vec);
        let wrong = |why: String| self.source.error(input.span(), format!("input: {why}"));
        let maker = Maker::from_text(input.get_ref(), value).map_err(wrong)?;
        let made = (0..INPUTS.min(self.wishes.rounds.max(1))).map(|number| {
            let seed = self.wishes.seed.wrapping_add(number);
            maker.make(point.bytes, seed).map_err(wrong)
        });
        made.collect()
    }

    fn answer(&self, test: &Test) -> Result<Option<Answer>, SuiteError> {
        let Some(text) = &test.answer else { return Ok(None) };
        if !test.measure.iter().any(|step| step.output) {
            let what = "answer: no step under measure has output = true";
            return Err(self.source.error(text.span(), what));
        }
        let value = |name: &str| self.value(name).map(<[u8]>::to_vec);
        let answer = Answer::from_text(text.get_ref(), value);
        answer.map(Some).map_err(|why| self.source.error(text.span(), format!("answer: {why}")))
    }

    /// Steps of something that says what it writes, or does not.
    fn steps(&self, texts: &[StepText], writes: Option<&String>) -> Result<Vec<Step>, SuiteError> {
        let declared = |step: Step| match step.declared {
            DeclaredEffect::Nothing if writes.is_some() => {
                Step { declared: DeclaredEffect::Writes, ..step }
            }
            _ => step,
        };
        texts.iter().map(|text| self.step(text).map(declared)).collect()
    }

    fn step(&self, text: &StepText) -> Result<Step, SuiteError> {
        let template = |field: &str, text: &Spanned<String>| {
            parse(text.get_ref())
                .map_err(|why| self.source.error(text.span(), format!("{field}: {why}")))
        };
        let header = template("apdu", &text.apdu)?;
        if header_bytes(&header) != 4 {
            let what = format!(
                "apdu: CLA, INS, P1 and P2 are 4 bytes, not {}; data and Le are fields of their own",
                header_bytes(&header)
            );
            return Err(self.source.error(text.apdu.span(), what));
        }
        let data = text.data.as_ref().map_or(Ok(Vec::new()), |data| template("data", data))?;
        let longest = if text.extended { 65_536 } else { 256 };
        if let Some(le) = &text.le
            && !(1..=longest).contains(le.get_ref())
        {
            let what = format!("le: 1 to {longest}, not {}", le.get_ref());
            return Err(self.source.error(le.span(), what));
        }
        Ok(Step {
            name: text.name.clone(),
            header,
            data,
            expected: text.le.as_ref().map(|le| *le.get_ref()),
            extended: text.extended,
            split: self.split(text)?,
            read: self.positive("read", text.read.as_ref())?,
            expect: self.expect(text)?,
            save: text.save.clone(),
            output: text.output,
            declared: self.declared(text)?,
        })
    }

    fn declared(&self, text: &StepText) -> Result<DeclaredEffect, SuiteError> {
        match &text.effect {
            None => Ok(DeclaredEffect::Nothing),
            Some(effect) if effect.get_ref().trim().is_empty() => {
                let what = "effect: say \"read\", or what it writes";
                Err(self.source.error(effect.span(), what))
            }
            Some(_) if text.writes().is_some() => Ok(DeclaredEffect::Writes),
            Some(_) => Ok(DeclaredEffect::Reads),
        }
    }

    /// What no card is to be sent is known before any card is asked.
    fn rehearse(&self, groups: &[&Group], tests: &[&Test]) -> Result<(), SuiteError> {
        let mut card = Rehearsal::new(&self.plan.job);
        if let Some(select) = self.selection()? {
            // An AID is what it is; SELECT reads.
            let _ = card.send(&select);
        }
        let all = |card: &mut Rehearsal<'_>, texts: &[StepText], writes: Option<&String>| {
            let steps = self.steps(texts, writes)?;
            texts.iter().zip(&steps).try_for_each(|(text, step)| {
                let told = card.send(step);
                told.map_err(|what| self.source.error(text.apdu.span(), format!("apdu: {what}")))
            })
        };
        for group in groups {
            all(&mut card, &group.steps, group.writes.as_ref())?;
        }
        for test in tests {
            all(&mut card, &test.before, test.writes.as_ref())?;
            if test.cold {
                card.unpower();
            }
            all(&mut card, &test.measure, test.writes.as_ref())?;
            all(&mut card, &test.after, test.writes.as_ref())?;
        }
        groups.iter().rev().try_for_each(|it| all(&mut card, &it.clean_up, it.writes.as_ref()))
    }

    fn split(&self, text: &StepText) -> Result<Split, SuiteError> {
        let chunk = self.positive("chunk", text.chunk.as_ref())?;
        match (chunk, text.chain) {
            (Some(_), true) => {
                let what = "chunk and chain are two ways of splitting data: take one";
                Err(self.source.error(text.apdu.span(), what))
            }
            (Some(size), false) => Ok(Split::Chunks(size)),
            (None, true) => Ok(Split::Chain),
            (None, false) => Ok(Split::None),
        }
    }

    /// What comes after an operation, or at the end, also comes after a PIN that was wrong.
    fn no_pin(&self, texts: &[StepText], steps: &[Step]) -> Result<(), SuiteError> {
        match texts.iter().zip(steps).find(|(_, step)| step.asks_for_pin()) {
            None => Ok(()),
            Some((text, _)) => {
                let what = "data: {pin} is for what comes before, not for what comes after";
                Err(self.source.error(text.apdu.span(), what))
            }
        }
    }

    fn positive(
        &self,
        field: &str,
        number: Option<&Spanned<u16>>,
    ) -> Result<Option<u16>, SuiteError> {
        match number {
            Some(number) if !(1..=255).contains(number.get_ref()) => {
                let what = format!("{field}: 1 to 255, not {}", number.get_ref());
                Err(self.source.error(number.span(), what))
            }
            number => Ok(number.map(|number| *number.get_ref())),
        }
    }

    fn expect(&self, text: &StepText) -> Result<Vec<u16>, SuiteError> {
        let Some(words) = &text.expect else { return Ok(vec![0x9000]) };
        let word = |word: &String| {
            let parsed = u16::from_str_radix(word, 16).ok().filter(|_| word.len() == 4);
            let what = || format!("expect: \"{word}\" is no status word: four hexadecimal digits");
            parsed.ok_or_else(|| self.source.error(words.span(), what()))
        };
        words.get_ref().iter().map(word).collect()
    }

    /// A cold test takes away what was made ready for the others.
    fn one_temperature(&self) -> Result<(), SuiteError> {
        if self.plan.job.prepare.is_empty() {
            return Ok(());
        }
        let mut lanes = self.plan.job.lanes.iter().map(|lane| lane.cold);
        let first = lanes.next().unwrap_or(false);
        if lanes.any(|cold| cold != first) {
            let what =
                "tests with cold = true cannot be run together with others: they unpower the card";
            return Err(self.source.whole(what));
        }
        Ok(())
    }
}

impl StepText {
    /// What it writes by its own word.
    fn writes(&self) -> Option<&str> {
        self.effect.as_ref().map(|effect| effect.get_ref().as_str()).filter(|word| *word != "read")
    }

    fn gives_pin(&self) -> bool {
        let data = self.data.as_ref().and_then(|data| parse(data.get_ref()).ok());
        data.is_some_and(|pieces| pieces.contains(&Piece::Value("pin".to_owned())))
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
