//! Texts without accents: the function of PostgreSQL's extension `unaccent`, by the rules that it brings.
//!
//! ```text
//! é       e with a mark above it      ->  e     a letter of Latin or Greek with marks is the letter (Unicode's decompositions)
//! æ ß ø   in the table                ->  ae ss o   ligatures, strokes, signs and fractions (CLDR's transliteration Latin-ASCII)
//! Ａ      a wide form of ASCII        ->  A
//! U+0301  a mark by itself            ->  nothing
//! ```
//!
//! What no rule names stays, as do letters of Cyrillic but for Ё. The rules never change, so that an index may be of `unaccent(a)`.
use std::collections::HashMap;
use std::sync::LazyLock;

use datafusion::logical_expr::ScalarUDF;
use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, text};

/// The name of the function, and of the one dictionary that it may be told to go by.
pub(crate) const UNACCENT: &str = "unaccent";

const VARIANTS: &[Variant] = &[
    Variant::strict(&[Kind::Text], Kind::Text, |row| Ok(Some(Cell::Text(unaccented(text(row.first())))))),
    Variant::strict(&[Kind::Text, Kind::Text], Kind::Text, |row| {
        let name = text(row.first());
        match name.trim().to_lowercase().trim_matches('"').strip_prefix("public.").unwrap_or(&name.to_lowercase()) {
            UNACCENT => Ok(Some(Cell::Text(unaccented(text(row.get(1)))))),
            _ => Err(SqlError::new("42704", format!("text search dictionary \"{name}\" does not exist"))),
        }
    }),
];

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [function(UNACCENT, VARIANTS)].into_iter()
}

/// What stands for characters that are no letters with marks: each with the text in its place, where `_` is a blank.
const RULES: &str = "\
    ¡! ©(C) «<< \u{ad}- ®(R) ±+/- »>> ¼_1/4 ½_1/2 ¾_3/4 ¿? ÆAE ÐD ×* ØO ÞTH ßss æae ðd ÷/ øo þth ĐD đd ĦH ħh ıi ĲIJ ĳij ĸq ĿL ŀl \
    ŁL łl ŉ'n ŊN ŋn ŒOE œoe ŦT ŧt ſs ƀb ƁB ƂB ƃb ƇC ƈc ƉD ƊD ƋD ƌd ƐE ƑF ƒf ƓG ƕhv ƖI ƗI ƘK ƙk ƚl ƝN ƞn ƢOI ƣoi ƤP ƥp ƫt ƬT \
    ƭt ƮT ƲV ƳY ƴy ƵZ ƶz ǄDZ ǅDz ǆdz ǇLJ ǈLj ǉlj ǊNJ ǋNj ǌnj ǤG ǥg ǱDZ ǲDz ǳdz ȡd ȤZ ȥz ȴl ȵn ȶt ȷj ȸdb ȹqp ȺA ȻC ȼc ȽL ȾT \
    ȿs ɀz ɃB ɄU ɆE ɇe ɈJ ɉj ɌR ɍr ɎY ɏy ɓb ɕc ɖd ɗd ɛe ɟj ɠg ɡg ɢG ɦh ɧh ɨi ɪI ɫl ɬl ɭl ɱm ɲn ɳn ɴN ɶOE ɼr ɽr ɾr ʀR ʂs ʈt ʉu \
    ʋv ʏY ʐz ʑz ʙB ʛG ʜH ʝj ʟL ʠq ʣdz ʥdz ʦts ʪls ʫlz ʹ' ʺ\" ʻ' ʼ' ʽ' ˂< ˃> ˄^ ˆ^ ˈ' ˋ` ː: ˖+ ˗- ˜~ ЁЕ ёе ᴀA ᴁAE ᴃB ᴄC ᴅD ᴆD \
    ᴇE ᴊJ ᴋK ᴌL ᴍM ᴏO ᴘP ᴛT ᴜU ᴠV ᴡW ᴢZ ᵫue ᵬb ᵭd ᵮf ᵯm ᵰn ᵱp ᵲr ᵳr ᵴs ᵵt ᵶz ᵺth ᵻI ᵽp ᵾU ᶀb ᶁd ᶂf ᶃg ᶄk ᶅl ᶆm ᶇn ᶈp ᶉr ᶊs \
    ᶌv ᶍx ᶎz ᶏa ᶑd ᶒe ᶓe ᶖi ᶙu ẚa ẜs ẝs ẞSS ỺLL ỻll ỼV ỽv ỾY ỿy ‐- ‑- ‒- –- —- ―- ‖|| ‘' ’' ‚, ‛' “\" ”\" „,, ‟\" ․. ‥.. …... \
    ′' ″\" ‹< ›> ‼!! ⁄/ ⁅[ ⁆] ⁇?? ⁈?! ⁉!? ⁎* ₠CE ₢Cr ₣Fr. ₤L. ₧Pts ₹Rs ₺TL ℀a/c ℁a/s ℂC ℃°C ℅c/o ℆c/u ℉°F ℊg ℋH ℌx ℍH ℎh ℐI \
    ℑI ℒL ℓl ℕN №No ℗(P) ℘P ℙP ℚQ ℛR ℜR ℝR ℞Rx ℡TEL ℤZ ℨZ ℬB ℭC ℯe ℰE ℱF ℳM ℴo ℹi ℻FAX ⅅD ⅆd ⅇe ⅈi ⅉj ⅐_1/7 ⅑_1/9 ⅒_1/10 \
    ⅓_1/3 ⅔_2/3 ⅕_1/5 ⅖_2/5 ⅗_3/5 ⅘_4/5 ⅙_1/6 ⅚_5/6 ⅛_1/8 ⅜_3/8 ⅝_5/8 ⅞_7/8 ⅟_1/ ⅠI ⅡII ⅢIII ⅣIV ⅤV ⅥVI ⅦVII ⅧVIII ⅨIX ⅩX \
    ⅪXI ⅫXII ⅬL ⅭC ⅮD ⅯM ⅰi ⅱii ⅲiii ⅳiv ⅴv ⅵvi ⅶvii ⅷviii ⅸix ⅹx ⅺxi ⅻxii ⅼl ⅽc ⅾd ⅿm ↉_0/3 −- ∕/ ∖\\ ∣| ∥|| ≪<< ≫>> ⑴(1) \
    ⑵(2) ⑶(3) ⑷(4) ⑸(5) ⑹(6) ⑺(7) ⑻(8) ⑼(9) ⑽(10) ⑾(11) ⑿(12) ⒀(13) ⒁(14) ⒂(15) ⒃(16) ⒄(17) ⒅(18) ⒆(19) ⒇(20) ⒈1. ⒉2. ⒊3. \
    ⒋4. ⒌5. ⒍6. ⒎7. ⒏8. ⒐9. ⒑10. ⒒11. ⒓12. ⒔13. ⒕14. ⒖15. ⒗16. ⒘17. ⒙18. ⒚19. ⒛20. ⒜(a) ⒝(b) ⒞(c) ⒟(d) ⒠(e) ⒡(f) ⒢(g) ⒣(h) \
    ⒤(i) ⒥(j) ⒦(k) ⒧(l) ⒨(m) ⒩(n) ⒪(o) ⒫(p) ⒬(q) ⒭(r) ⒮(s) ⒯(t) ⒰(u) ⒱(v) ⒲(w) ⒳(x) ⒴(y) ⒵(z) ⦅(( ⦆)) ⩴::= ⩵== ⩶=== ⱠL ⱡl ⱢL \
    ⱣP ⱤR ⱥa ⱦt ⱧH ⱨh ⱩK ⱪk ⱫZ ⱬz ⱮM ⱱv ⱲW ⱳw ⱴv ⱸe ⱺo ⱾS ⱿZ 、, 。. 〇0 〈< 〉> 《<< 》>> 〔[ 〕] 〘[ 〙] 〚[ 〛] 〝\" 〞\" ㍱hPa ㍲da ㍳AU \
    ㍴bar ㍵oV ㍶pc ㍷dm ㍺IU ㎀pA ㎁nA ㎃mA ㎄kA ㎅KB ㎆MB ㎇GB ㎈cal ㎉kcal ㎊pF ㎋nF ㎎mg ㎏kg ㎐Hz ㎑kHz ㎒MHz ㎓GHz ㎔THz ㎙fm ㎚nm ㎜mm ㎝cm ㎞km \
    ㎧m/s ㎩Pa ㎪kPa ㎫MPa ㎬GPa ㎭rad ㎮rad/s ㎰ps ㎱ns ㎳ms ㎴pV ㎵nV ㎷mV ㎸kV ㎹MV ㎺pW ㎻nW ㎽mW ㎾kW ㎿MW ㏂a.m. ㏃Bq ㏄cc ㏅cd ㏆C/kg ㏇Co. ㏈dB \
    ㏉Gy ㏊ha ㏋HP ㏌in ㏍KK ㏎KM ㏏kt ㏐lm ㏑ln ㏒log ㏓lx ㏔mb ㏕mil ㏖mol ㏗pH ㏘p.m. ㏙PPM ㏚PR ㏛sr ㏜Sv ㏝Wb ㏞V/m ㏟A/m ꜰF ꜱS ꜲAA ꜳaa ꜴAO \
    ꜵao ꜶAU ꜷau ꜸAV ꜹav ꜺAV ꜻav ꜼAY ꜽay ꝀK ꝁk ꝂK ꝃk ꝄK ꝅk ꝆL ꝇl ꝈL ꝉl ꝊO ꝋo ꝌO ꝍo ꝎOO ꝏoo ꝐP ꝑp ꝒP ꝓp ꝔP ꝕp ꝖQ ꝗq ꝘQ ꝙq ꝞV \
    ꝟv ꝠVY ꝡvy ꝤTH ꝥth ꝦTH ꝧth ꝱd ꝲl ꝳm ꝴn ꝵr ꝶR ꝷt ꝹD ꝺd ꝻF ꝼf ꞆT ꞇt ꞐN ꞑn ꞒC ꞓc ꞠG ꞡg ꞢK ꞣk ꞤN ꞥn ꞦR ꞧr ꞨS ꞩs ꞪH ﬀff ﬁfi \
    ﬂfl ﬃffi ﬄffl ﬅst ﬆst ︐, ︑, ︒. ︓: ︔; ︕! ︖? ︙... ︰.. ︱- ︲- ︵( ︶) ︷{ ︸} ︹[ ︺] ︽<< ︾>> ︿< ﹀> ﹇[ ﹈] ﹐, ﹑, ﹒. ﹔; ﹕: ﹖? ﹗! ﹘- \
    ﹙( ﹚) ﹛{ ﹜} ﹝[ ﹞] ﹟# ﹠& ﹡* ﹢+ ﹣- ﹤< ﹥> ﹦= ﹨\\ ﹩$ ﹪% ﹫@ ｟(( ｠)) ｡. ､, ￩<- ￫-> 🄀0. 🄁0, 🄂1, 🄃2, 🄄3, 🄅4, 🄆5, 🄇6, 🄈7, 🄉8, 🄊9, \
    🄐(A) 🄑(B) 🄒(C) 🄓(D) 🄔(E) 🄕(F) 🄖(G) 🄗(H) 🄘(I) 🄙(J) 🄚(K) 🄛(L) 🄜(M) 🄝(N) 🄞(O) 🄟(P) 🄠(Q) 🄡(R) 🄢(S) 🄣(T) 🄤(U) 🄥(V) 🄦(W) 🄧(X) \
    🄨(Y) 🄩(Z)";

static BY_CHARACTER: LazyLock<HashMap<char, String>> = LazyLock::new(|| {
    let rule = |rule: &str| {
        let mut characters = rule.chars();
        characters.next().map(|from| (from, characters.as_str().replace('_', " ")))
    };
    RULES.split(' ').filter_map(rule).collect()
});

/// Letters of Greek that lose their marks.
const GREEK: &str = "ΑΕΗΙΟΥΩΡαεηιουωρ";

/// How far the wide forms of ASCII are from it.
const WIDE: u32 = 0xfee0;

/// A text without accents.
fn unaccented(of: &str) -> String {
    let mut plain = String::with_capacity(of.len());
    for character in of.chars() {
        match character {
            _ if character.is_ascii() => plain.push(character),
            '\u{300}'..='\u{362}' | '\u{20dd}'..='\u{20e0}' | '\u{20e2}'..='\u{20e4}' => {}
            '\u{ff01}'..='\u{ff5e}' => plain.extend(char::from_u32(u32::from(character) - WIDE)),
            _ => match BY_CHARACTER.get(&character) {
                Some(instead) => plain.push_str(instead),
                None => plain.push(base(character).unwrap_or(character)),
            },
        }
    }
    plain
}

/// The letter of Latin or Greek that a character is with marks, if it is one.
fn base(character: char) -> Option<char> {
    let decompositions = CanonicalDecompositionBorrowed::new();
    let mut base = character;
    loop {
        match decompositions.decompose(base) {
            Decomposed::Expansion(letter, _) => base = letter,
            Decomposed::Singleton(_) => return None,
            Decomposed::Default => break,
        }
    }
    (base != character && (base.is_ascii_alphabetic() || GREEK.contains(base))).then_some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_lose_their_marks_and_what_no_rule_names_stays() {
        let cases = [
            ("Hôtel Ærøskøbing Straße", "Hotel AEroskobing Strasse"),
            ("\u{e9} e\u{301} \u{1e69}", "e e s"),
            ("ή ᾏ ύ", "ή Α υ"),
            ("й ё 語", "й е 語"),
            ("\u{212b} \u{2260} \u{ad}", "\u{212b} \u{2260} -"),
            ("Ａ～ ½", "A~  1/2"),
        ];
        for (given, expected) in cases {
            assert_eq!(unaccented(given), expected, "{given}");
        }
    }

    #[test]
    fn each_rule_is_of_another_character() {
        assert_eq!(BY_CHARACTER.len(), RULES.split(' ').count());
        assert!(BY_CHARACTER.values().all(|instead| !instead.is_empty()));
    }
}
