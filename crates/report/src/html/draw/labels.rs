//! Text of a chart: each piece is inside the drawing, and none stands over another one.

use plotters::element::Text;
use plotters::prelude::IntoFont;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{RGBColor, TextStyle};

use super::{Area, FONT, NotDrawn, TEXT, fitted, pixels};

/// The height of a line of text, in pixels.
pub(super) const LINE: f64 = 15.0;

/// Plotters writes a size of font that is smaller than what it was given, by this factor.
const GIVEN: f64 = 1.24;

/// No two pieces are nearer to each other, in pixels.
const APART: f64 = 4.0;

/// Where text stands: a point, and on which side of it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) across: HPos,
    pub(super) up: VPos,
}

/// The corners of a piece of text.
#[derive(Clone, Copy)]
struct Corners {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Corners {
    fn meet(&self, other: &Self) -> bool {
        self.left < other.right + APART
            && other.left < self.right + APART
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Writes into a drawing, and keeps what is taken.
pub(super) struct Labels<'a, 'b> {
    area: &'a Area<'b>,
    width: f64,
    height: f64,
    taken: Vec<Corners>,
}

impl<'a, 'b> Labels<'a, 'b> {
    pub(super) fn new(area: &'a Area<'b>) -> Self {
        let (width, height) = area.dim_in_pixel();
        Self { area, width: width.into(), height: height.into(), taken: Vec::new() }
    }

    /// What follows is written into another drawing, which is as large and lies on the first.
    pub(super) const fn go_on_in(&mut self, area: &'a Area<'b>) {
        self.area = area;
    }

    /// Text at the first of these places that is free; where none is, it is left out. It is moved
    /// into the drawing, and shortened when it is wider than `most` pixels.
    pub(super) fn write(
        &mut self,
        text: &str,
        colour: RGBColor,
        most: f64,
        places: &[Place],
    ) -> Result<(), NotDrawn> {
        let text = fitted(text, most.min(self.width - 2.0));
        let inside = places.iter().map(|place| self.inside(&text, *place));
        let Some((place, corners)) =
            inside.into_iter().find(|(_, it)| !self.taken.iter().any(|other| it.meet(other)))
        else {
            return Ok(());
        };
        self.taken.push(corners);
        let style = TextStyle::from((FONT, TEXT * GIVEN).into_font())
            .color(&colour)
            .pos(Pos::new(place.across, place.up));
        self.area.draw(&Text::new(
            text,
            (place.x.round() as i32, place.y.round() as i32),
            style,
        ))?;
        Ok(())
    }

    fn inside(&self, text: &str, mut place: Place) -> (Place, Corners) {
        let corners = |place: &Place| {
            let width = pixels(text);
            let left = match place.across {
                HPos::Left => place.x,
                HPos::Center => place.x - width / 2.0,
                HPos::Right => place.x - width,
            };
            let top = match place.up {
                VPos::Top => place.y,
                VPos::Center => place.y - LINE / 2.0,
                VPos::Bottom => place.y - LINE,
            };
            Corners { left, right: left + width, top, bottom: top + LINE }
        };
        let first = corners(&place);
        place.x += (1.0 - first.left).max(0.0) - (first.right - self.width + 1.0).max(0.0);
        place.y += (1.0 - first.top).max(0.0) - (first.bottom - self.height + 1.0).max(0.0);
        (place, corners(&place))
    }
}
