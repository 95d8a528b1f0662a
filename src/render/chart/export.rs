//! SVG to PNG and PDF with the embedded fonts, so that a machine without fonts draws the same.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::text::FONTS;

/// Pixels per unit of the SVG: a page is 1360 pixels wide.
const SCALE: f32 = 2.0;
/// Units per inch on paper: a page of 680 units fills 6.8 inches.
const UNITS_PER_INCH: f32 = 100.0;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("figure `{name}`: its SVG cannot be read back: {source}")]
    Parse { name: String, source: resvg::usvg::Error },
    #[error("figure `{name}`: its PNG cannot be made: {message}")]
    Png { name: String, message: String },
    #[error("figure `{name}`: its PDF cannot be made: {message}")]
    Pdf { name: String, message: String },
}

/// A chart that has been read back from its SVG.
pub struct Drawing {
    name: String,
    tree: Tree,
}

fn fonts() -> Arc<fontdb::Database> {
    static LOADED: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut fonts = fontdb::Database::new();
        for font in FONTS {
            fonts.load_font_data(font.to_vec());
        }
        fonts.set_sans_serif_family("Roboto");
        Arc::new(fonts)
    };
    Arc::clone(LOADED.get_or_init(load))
}

impl Drawing {
    pub fn read(name: &str, svg: &str) -> Result<Drawing, ExportError> {
        let options = Options { fontdb: fonts(), font_family: "Roboto".to_string(), ..Options::default() };
        let tree = Tree::from_str(svg, &options).map_err(|source| ExportError::Parse { name: name.to_string(), source })?;
        Ok(Drawing { name: name.to_string(), tree })
    }

    pub fn png(&self) -> Result<Vec<u8>, ExportError> {
        let wrong = |message: &str| ExportError::Png { name: self.name.clone(), message: message.to_string() };
        let size = self.tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| wrong("it has no area"))?;
        let mut pixels = Pixmap::new(size.width(), size.height()).ok_or_else(|| wrong("it is too large"))?;
        resvg::render(&self.tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| wrong(&error.to_string()))
    }

    pub fn pdf(&self) -> Result<Vec<u8>, ExportError> {
        let wrong = |message: String| ExportError::Pdf { name: self.name.clone(), message };
        let page = svg2pdf::PageOptions { dpi: UNITS_PER_INCH };
        let made = svg2pdf::to_pdf(&self.tree, svg2pdf::ConversionOptions::default(), page);
        let made = made.map_err(|error| wrong(error.to_string()))?;
        super::pdf::ordered(&made).ok_or_else(|| wrong("its objects cannot be put in order".to_string()))
    }

    /// The largest rectangle that anything is drawn in: left, top, right, bottom.
    pub fn extent(&self) -> [f32; 4] {
        let bounds = self.tree.root().abs_bounding_box();
        [bounds.left(), bounds.top(), bounds.right(), bounds.bottom()]
    }
    pub fn size(&self) -> (f32, f32) {
        (self.tree.size().width(), self.tree.size().height())
    }
}
