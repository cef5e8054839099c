//! What the parser's library does not read, brought into words that it does, or refused, among the tokens of a statement.
//!
//! ```text
//! TABLE t                              ->  SELECT * FROM t
//! ... FOLLOWING EXCLUDE NO OTHERS)     ->  ... FOLLOWING)
//! ... '1 day'::interval FOLLOWING)      ->  ... '1 day' FOLLOWING)
//! GROUP BY DISTINCT a, b                ->  GROUP BY '\0distinct', a, b
//! GROUPING SETS (GROUPING SETS (a, ())) ->  GROUPING SETS ("\0sets" (a, '\0empty'))
//! ... 2 FOLLOWING EXCLUDE TIES)        ->  ... 2 COLLATE "\0exclude\0TIES" FOLLOWING)
//! RESET TIME ZONE                      ->  RESET timezone
//! SET LOCAL SESSION AUTHORIZATION r    ->  SET LOCAL session_authorization = r
//! SET ROLE r                           ->  SET role = r
//! FROM ONLY t, UPDATE ONLY (t)         ->  FROM t, UPDATE t
//! ORDER BY a USING >                   ->  ORDER BY a DESC
//! CREATE UNLOGGED TABLE t              ->  CREATE TABLE t
//! DROP INDEX CONCURRENTLY i            ->  DROP INDEX i
//! TRIM(LEADING FROM a)                 ->  TRIM(LEADING ' ' FROM a)
//! SUBSTRING(a SIMILAR b ESCAPE c)      ->  SUBSTRING(a FROM b FOR c)
//! FROM json_to_record(j) AS (a int)    ->  FROM json_to_record(j) AS "json_to_record" (a int)
//! 'a', and on a later line 'b'         ->  'ab'
//! SELECT; (SELECT); SELECT WHERE a     ->  SELECT FROM (VALUES (1)) AS "\0one" ...
//! ```
//!
//! The parser knows no `EXCLUDE`, but operators behind an offset; `semantics::frames` finds the mark in its tree, and
//! `semantics::grouping` those of groups. What is said of identity columns stands in `identity_tokens`.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

/// The name that stands for `DO NOTHING` in a `MERGE`.
pub(crate) const NOTHING: &str = "\0nothing";

/// `THEN DO NOTHING` of a `MERGE`, as an update or an insertion that no statement can spell.
fn nothings(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if keyword(&tokens[at]) == Keyword::THEN
            && let [act, nothing] = following(tokens, at).take(2).collect::<Vec<_>>()[..]
            && keyword(&tokens[act]) == Keyword::DO
            && keyword(&tokens[nothing]) == Keyword::NOTHING
        {
            let before = tokens[..at].iter().rev().filter(|token| is_sign(token));
            let mut before = before.skip_while(|token| keyword(token) != Keyword::MATCHED).skip(1);
            let is_matched = before.next().is_none_or(|token| keyword(token) != Keyword::NOT);
            let span = tokens[act].span;
            let word = |text: &str| Token::make_word(text, None);
            let (name, zero) = (Token::make_word(NOTHING, Some('"')), Token::Number("0".to_owned(), false));
            let instead = match is_matched {
                true => vec![word("UPDATE"), word("SET"), name, Token::Eq, zero],
                false => vec![word("INSERT"), word("VALUES"), Token::LParen, name, Token::RParen],
            };
            let instead = instead.into_iter().map(|token| TokenWithSpan { token, span });
            tokens.splice(act..=nothing, instead);
        }
        at += 1;
    }
}

/// `RESET TIME ZONE`, the one setting whose name is two words there.
fn reset_zone(tokens: &mut Vec<TokenWithSpan>) {
    let signs: Vec<usize> = (0..tokens.len()).filter(|at| is_sign(&tokens[*at])).take(3).collect();
    if let [reset, time, zone] = signs[..]
        && keyword(&tokens[reset]) == Keyword::RESET
        && keyword(&tokens[time]) == Keyword::TIME
        && keyword(&tokens[zone]) == Keyword::ZONE
    {
        let name = TokenWithSpan { token: Token::make_word("timezone", None), span: tokens[time].span };
        tokens.splice(time..=zone, [name]);
    }
}

/// `SET ROLE` and `SET SESSION AUTHORIZATION`, as settings, and their `RESET`.
fn roles(tokens: &mut Vec<TokenWithSpan>) {
    let signs: Vec<usize> = (0..tokens.len()).filter(|at| is_sign(&tokens[*at])).take(4).collect();
    let word = |at: usize| signs.get(at).map_or(Keyword::NoKeyword, |at| keyword(&tokens[*at]));
    let is_reset = word(0) == Keyword::RESET;
    if !is_reset && word(0) != Keyword::SET {
        return;
    }
    // `SET SESSION AUTHORIZATION` says it of the session in any case.
    let is_scope = |at: usize| matches!(word(at), Keyword::SESSION | Keyword::LOCAL);
    let is_equals = |at: usize| signs.get(at).is_none_or(|at| tokens[*at].token == Token::Eq);
    let first = 1 + usize::from(!is_reset && is_scope(1) && word(2) != Keyword::AUTHORIZATION);
    let (last, name) = match (word(first), word(first + 1)) {
        (Keyword::SESSION, Keyword::AUTHORIZATION) => (first + 1, "session_authorization"),
        // `SET role = r` is a setting as it is; of `SET role TO r` the library would take `TO` for the role.
        (Keyword::ROLE, Keyword::TO) if !is_reset => {
            tokens[signs[first + 1]].token = Token::Eq;
            return;
        }
        (Keyword::ROLE, _) if !is_reset && !is_equals(first + 1) => (first, "role"),
        _ => return,
    };
    let span = tokens[signs[first]].span;
    let blank = Token::Whitespace(Whitespace::Space);
    let setting = [Token::make_word(name, None), blank.clone(), Token::Eq, blank];
    let setting = setting.into_iter().take(if is_reset { 1 } else { 4 });
    tokens.splice(signs[first]..=signs[last], setting.map(|token| TokenWithSpan { token, span }));
}

/// `ORDER BY a USING <`: the only `USING` that no parenthesis, name or string follows.
fn order_operators(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let next = following(tokens, at).next();
        if keyword(&tokens[at]) == Keyword::USING
            && let Some(operator) = next
        {
            let direction = match tokens[operator].token {
                Token::Lt => Some("ASC"),
                Token::Gt => Some("DESC"),
                _ => None,
            };
            if let Some(direction) = direction {
                let word = TokenWithSpan { token: Token::make_word(direction, None), span: tokens[at].span };
                tokens.splice(at..=operator, [word]);
            }
        }
        at += 1;
    }
}

/// `CREATE UNLOGGED TABLE`, whose rows are as safe here as any others.
fn unlogged(tokens: &mut Vec<TokenWithSpan>) {
    let signs: Vec<usize> = (0..tokens.len()).filter(|at| is_sign(&tokens[*at])).take(3).collect();
    if let [create, unlogged, table] = signs[..]
        && keyword(&tokens[create]) == Keyword::CREATE
        && matches!(&tokens[unlogged].token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("unlogged"))
        && matches!(keyword(&tokens[table]), Keyword::TABLE | Keyword::SEQUENCE)
    {
        tokens.remove(unlogged);
    }
}

/// `DROP INDEX CONCURRENTLY`: others go on with the table meanwhile in any case.
fn concurrent_drop(tokens: &mut Vec<TokenWithSpan>) {
    let signs: Vec<usize> = (0..tokens.len()).filter(|at| is_sign(&tokens[*at])).take(3).collect();
    if let [drop, index, concurrently] = signs[..]
        && keyword(&tokens[drop]) == Keyword::DROP
        && keyword(&tokens[index]) == Keyword::INDEX
        && keyword(&tokens[concurrently]) == Keyword::CONCURRENTLY
    {
        tokens.remove(concurrently);
    }
}

/// `TRIM(LEADING FROM a)`, which leaves out blanks.
fn trims(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let next: Vec<usize> = following(tokens, at).take(3).collect();
        if keyword(&tokens[at]) == Keyword::TRIM
            && let [open, side, from] = next[..]
            && tokens[open].token == Token::LParen
            && matches!(keyword(&tokens[side]), Keyword::LEADING | Keyword::TRAILING | Keyword::BOTH)
            && keyword(&tokens[from]) == Keyword::FROM
        {
            let blank = Token::SingleQuotedString(" ".to_owned());
            tokens.insert(from, TokenWithSpan { token: blank, span: tokens[from].span });
        }
        at += 1;
    }
}

/// `SUBSTRING(a SIMILAR b ESCAPE c)`, the standard's words for what PostgreSQL asks with `FROM` and `FOR` as well.
fn similar_parts(tokens: &mut [TokenWithSpan]) {
    let calls: Vec<usize> = (0..tokens.len()).filter(|at| keyword(&tokens[*at]) == Keyword::SUBSTRING).collect();
    for call in calls {
        let open = following(tokens, call).next().filter(|open| tokens[*open].token == Token::LParen);
        let Some(open) = open else { continue };
        let mut depth = 0_usize;
        let mut inner = Vec::new();
        for place in following(tokens, open) {
            match tokens[place].token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                _ if depth == 0 => inner.push(place),
                _ => {}
            }
        }
        let of = |word: Keyword| inner.iter().copied().find(|place| keyword(&tokens[*place]) == word);
        let is_operator =
            |place: usize| following(tokens, place).next().is_some_and(|to| keyword(&tokens[to]) == Keyword::TO);
        if let (Some(similar), Some(escape)) = (of(Keyword::SIMILAR), of(Keyword::ESCAPE))
            && !is_operator(similar)
        {
            tokens[similar].token = Token::make_word("FROM", None);
            tokens[escape].token = Token::make_word("FOR", None);
        }
    }
}

/// Columns of a function's rows with their types, which have the function's name where no other is given.
fn unnamed_rows(tokens: &mut Vec<TokenWithSpan>) {
    let begins_query = |token: &TokenWithSpan| {
        let word = keyword(token);
        matches!(word, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE | Keyword::INSERT)
            || matches!(word, Keyword::UPDATE | Keyword::DELETE | Keyword::MERGE)
    };
    let is_word = |token: &TokenWithSpan| matches!(token.token, Token::Word(_));
    let places: Vec<usize> = (0..tokens.len()).filter(|at| keyword(&tokens[*at]) == Keyword::AS).collect();
    for place in places.into_iter().rev() {
        let next: Vec<usize> = following(tokens, place).take(3).collect();
        let [open, column, of_type] = next[..] else { continue };
        let is_list = tokens[open].token == Token::LParen && is_word(&tokens[column]) && is_word(&tokens[of_type]);
        if is_list
            && !begins_query(&tokens[column])
            && let Some(name) = called_before(tokens, place)
        {
            let span = tokens[place].span;
            let instead = [Token::Whitespace(Whitespace::Space), Token::make_word(&name, Some('"'))];
            tokens.splice(place + 1..place + 1, instead.map(|token| TokenWithSpan { token, span }));
        }
    }
}

/// A `SELECT` of no columns and no tables, which gives one row.
fn empty_selects(tokens: &mut Vec<TokenWithSpan>) {
    const ENDS: [Keyword; 6] =
        [Keyword::UNION, Keyword::INTERSECT, Keyword::EXCEPT, Keyword::WHERE, Keyword::ORDER, Keyword::LIMIT];
    let is_empty = |at: &usize| {
        keyword(&tokens[*at]) == Keyword::SELECT
            && following(tokens, *at).next().is_none_or(|next| match &tokens[next].token {
                Token::EOF | Token::SemiColon | Token::RParen => true,
                _ => ENDS.contains(&keyword(&tokens[next])),
            })
    };
    let places: Vec<usize> = (0..tokens.len()).filter(is_empty).collect();
    for place in places.into_iter().rev() {
        let span = tokens[place].span;
        let (word, one) = (|text: &str| Token::make_word(text, None), Token::Number("1".to_owned(), false));
        let values = [word("VALUES"), Token::LParen, one, Token::RParen];
        let named = [Token::RParen, word("AS"), Token::make_word("\0one", Some('"'))];
        let rows = [word("FROM"), Token::LParen].into_iter().chain(values).chain(named);
        tokens.splice(place + 1..place + 1, rows.map(|token| TokenWithSpan { token, span }));
    }
}

/// The name of the function whose call ends before this token.
fn called_before(tokens: &[TokenWithSpan], at: usize) -> Option<String> {
    let mut depth = 0_usize;
    let mut before = (0..at).rev().filter(|at| is_sign(&tokens[*at])).skip_while(|at| {
        match tokens[*at].token {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0
    });
    let open = before.next().filter(|at| tokens[*at].token == Token::LParen);
    match &tokens[open.and_then(|_| before.next())?].token {
        Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
        Token::Word(word) => Some(word.value.to_lowercase()),
        _ => None,
    }
}

/// Strings with nothing but blanks between them, a new line among these, are one string.
fn continued_strings(tokens: &mut Vec<TokenWithSpan>) {
    let is_string = |token: &TokenWithSpan| matches!(token.token, Token::SingleQuotedString(_));
    let mut at = 0;
    while at + 1 < tokens.len() {
        if !is_string(&tokens[at]) {
            at += 1;
            continue;
        }
        let next = tokens[at + 1..].iter().position(|token| !matches!(token.token, Token::Whitespace(_)));
        let next = next.map(|next| at + 1 + next).filter(|next| is_string(&tokens[*next]));
        let ends_line = |token: &TokenWithSpan| {
            matches!(token.token, Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. }))
        };
        if let Some(next) = next.filter(|next| tokens[at + 1..*next].iter().any(ends_line))
            && let Token::SingleQuotedString(more) = tokens[next].token.clone()
            && let Token::SingleQuotedString(text) = &mut tokens[at].token
        {
            text.push_str(&more);
            tokens.drain(at + 1..=next);
        } else {
            at += 1;
        }
    }
}

/// `ONLY` before a table, of which none inherits.
fn only_tables(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if matches!(keyword(&tokens[at]), Keyword::FROM | Keyword::JOIN | Keyword::UPDATE)
            && let [only, table] = following(tokens, at).take(2).collect::<Vec<_>>()[..]
            && keyword(&tokens[only]) == Keyword::ONLY
        {
            let is_open = tokens[table].token == Token::LParen;
            let close = (table..tokens.len()).find(|at| is_open && tokens[*at].token == Token::RParen);
            if let Some(close) = close {
                tokens.remove(close);
                tokens.drain(only..=table);
            } else if matches!(tokens[table].token, Token::Word(_)) {
                tokens.remove(only);
            }
        }
        at += 1;
    }
}

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    continued_strings(tokens);
    reset_zone(tokens);
    roles(tokens);
    unlogged(tokens);
    concurrent_drop(tokens);
    if tokens.iter().any(|token| keyword(token) == Keyword::ORDER) {
        order_operators(tokens);
    }
    if tokens.iter().any(|token| keyword(token) == Keyword::ONLY) {
        only_tables(tokens);
    }
    if tokens.iter().any(|token| keyword(token) == Keyword::TRIM) {
        trims(tokens);
    }
    if tokens.iter().any(|token| keyword(token) == Keyword::SIMILAR) {
        similar_parts(tokens);
    }
    unnamed_rows(tokens);
    empty_selects(tokens);
    if tokens.iter().any(|token| keyword(token) == Keyword::MERGE) {
        nothings(tokens);
    }
    let has = |wanted: Keyword| tokens.iter().any(|token| keyword(token) == wanted);
    if has(Keyword::PRECEDING) || has(Keyword::FOLLOWING) {
        intervals(tokens);
    }
    let has = |wanted: Keyword| tokens.iter().any(|token| keyword(token) == wanted);
    if has(Keyword::EXCLUDE) {
        exclusions(tokens);
    }
    if tokens.iter().any(|token| keyword(token) == Keyword::TABLE) {
        tables(tokens);
    }
    let has = |wanted: Keyword| tokens.iter().any(|token| keyword(token) == wanted);
    if has(Keyword::GROUP) && (has(Keyword::DISTINCT) || has(Keyword::ALL)) {
        quantified_groups(tokens);
    }
    if tokens.iter().filter(|token| keyword(token) == Keyword::GROUPING).count() > 1 {
        nested_sets(tokens);
    }
}

pub(crate) fn keyword(token: &TokenWithSpan) -> Keyword {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// The places of the next tokens that are no blanks.
pub(crate) fn following(tokens: &[TokenWithSpan], at: usize) -> impl Iterator<Item = usize> {
    (at + 1..tokens.len()).filter(|at| is_sign(&tokens[*at]))
}

/// The bracket or parenthesis that closes the one that is opened here.
pub(crate) fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LBracket | Token::LParen => depth += 1,
            Token::RBracket | Token::RParen if depth <= 1 => return Some(at),
            Token::RBracket | Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

pub(crate) fn is_sign(token: &TokenWithSpan) -> bool {
    !matches!(token.token, Token::Whitespace(_))
}

/// `'1 day'::interval PRECEDING`, where the parser takes the text for an interval without the cast.
fn intervals(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if matches!(tokens[at].token, Token::SingleQuotedString(_)) {
            let next: Vec<usize> = following(tokens, at).take(3).collect();
            if let [cast, to, side] = next[..]
                && tokens[cast].token == Token::DoubleColon
                && keyword(&tokens[to]) == Keyword::INTERVAL
                && matches!(keyword(&tokens[side]), Keyword::PRECEDING | Keyword::FOLLOWING)
            {
                tokens.drain(cast..=to);
            }
        }
        at += 1;
    }
}

/// How the name of a collation begins that stands for what a frame leaves out, as no statement can spell it:
/// `\0exclude\0TIES`, with what the bound was in the end where an offset had to be put in its place.
pub(crate) const EXCLUSION: &str = "\0exclude\0";

/// The bound had no offset.
pub(crate) const UNBOUNDED: &str = "unbounded";

/// The bound was the current row.
pub(crate) const CURRENT: &str = "current";

/// What a window's frame leaves out, as a mark on the offset of its last bound.
fn exclusions(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if keyword(&tokens[at]) == Keyword::EXCLUDE {
            let next: Vec<usize> = following(tokens, at).take(3).collect();
            let word =
                |nth: usize| next.get(nth).map_or(String::new(), |at| tokens[*at].token.to_string().to_uppercase());
            match (word(0).as_str(), word(1).as_str(), word(2).as_str()) {
                ("NO", "OTHERS", ")") => {
                    tokens.drain(at..=next[1]);
                }
                (what @ ("GROUP" | "TIES"), ")", _) => mark(tokens, at, next[0], what),
                ("CURRENT", "ROW", ")") => mark(tokens, at, next[1], "CURRENT ROW"),
                _ => {}
            }
        }
        at += 1;
    }
}

/// Takes the words of an exclusion away, and marks the bound before them if there is one.
fn mark(tokens: &mut Vec<TokenWithSpan>, from: usize, to: usize, what: &str) {
    let before: Vec<usize> = (0..from).rev().filter(|at| is_sign(&tokens[*at])).take(3).collect();
    let [last, first, ..] = before[..] else { return };
    let span = tokens[from].span;
    let word = |text: &str, keyword: Keyword| Token::Word(Word { value: text.to_owned(), quote_style: None, keyword });
    let blank = Token::Whitespace(Whitespace::Space);
    let collation = |bound: &str| {
        let name =
            Word { value: format!("{EXCLUSION}{what}{bound}"), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        [blank.clone(), word("COLLATE", Keyword::COLLATE), blank.clone(), Token::Word(name), blank.clone()]
    };
    let null = word("NULL", Keyword::NULL);
    let side = tokens[last].token.clone();
    let (start, offset, bound, side) = match (keyword(&tokens[first]), keyword(&tokens[last])) {
        (Keyword::CURRENT, Keyword::ROW) => {
            (first, vec![null], format!("\0{CURRENT}"), word("FOLLOWING", Keyword::FOLLOWING))
        }
        (Keyword::UNBOUNDED, Keyword::PRECEDING | Keyword::FOLLOWING) => {
            (first, vec![null], format!("\0{UNBOUNDED}"), side)
        }
        (_, Keyword::PRECEDING | Keyword::FOLLOWING) => {
            // The parser takes a text that stands there by itself for a whole interval.
            let is_typed = before.get(2).is_some_and(|at| keyword(&tokens[*at]) == Keyword::INTERVAL);
            match &tokens[first].token {
                text @ Token::SingleQuotedString(_) if !is_typed => {
                    let interval = word("INTERVAL", Keyword::INTERVAL);
                    (first, vec![interval, blank.clone(), text.clone()], String::new(), side)
                }
                _ => (last, vec![], String::new(), side),
            }
        }
        _ => return,
    };
    let spelled = offset.into_iter().chain(collation(&bound)).chain([side]);
    let spelled: Vec<TokenWithSpan> = spelled.map(|token| TokenWithSpan { token, span }).collect();
    tokens.splice(start..=to, spelled);
}

/// The first of the keys says that no set of a `GROUP BY` is taken twice.
pub(crate) const DISTINCT_SETS: &str = "\0distinct";

/// The function that stands for `GROUPING SETS` within others.
pub(crate) const SETS: &str = "\0sets";

/// The set without columns among its arguments.
pub(crate) const EMPTY_SET: &str = "\0empty";

/// `GROUP BY DISTINCT`, and `GROUP BY ALL`, which says nothing.
fn quantified_groups(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if keyword(&tokens[at]) == Keyword::GROUP
            && let [by, quantifier] = following(tokens, at).take(2).collect::<Vec<_>>()[..]
            && keyword(&tokens[by]) == Keyword::BY
        {
            let span = tokens[quantifier].span;
            let mark = [Token::SingleQuotedString(DISTINCT_SETS.to_owned()), Token::Comma];
            match keyword(&tokens[quantifier]) {
                Keyword::ALL => drop(tokens.remove(quantifier)),
                Keyword::DISTINCT => {
                    tokens.splice(quantifier..=quantifier, mark.map(|token| TokenWithSpan { token, span }));
                }
                _ => {}
            }
        }
        at += 1;
    }
}

/// `GROUPING SETS` among the sets of another.
fn nested_sets(tokens: &mut Vec<TokenWithSpan>) {
    /// What a parenthesis is of.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Of {
        Sets,
        NestedSets,
        Other,
    }
    let mut around: Vec<Of> = Vec::new();
    let mut next = Of::Other;
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].token {
            Token::LParen => {
                let close = following(tokens, at).next();
                let is_empty = close.is_some_and(|close| tokens[close].token == Token::RParen);
                if let (Some(Of::NestedSets), Of::Other, true, Some(close)) = (around.last(), next, is_empty, close) {
                    let token = Token::SingleQuotedString(EMPTY_SET.to_owned());
                    let span = tokens[at].span;
                    tokens.splice(at..=close, [TokenWithSpan { token, span }]);
                } else {
                    around.push(std::mem::replace(&mut next, Of::Other));
                }
            }
            Token::RParen => drop(around.pop()),
            Token::Word(_) if keyword(&tokens[at]) == Keyword::GROUPING => {
                if let [sets, open] = following(tokens, at).take(2).collect::<Vec<_>>()[..]
                    && keyword(&tokens[sets]) == Keyword::SETS
                    && tokens[open].token == Token::LParen
                {
                    next = Of::Sets;
                    if matches!(around.last(), Some(Of::Sets | Of::NestedSets)) {
                        next = Of::NestedSets;
                        let value = SETS.to_owned();
                        let name = Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword };
                        let span = tokens[at].span;
                        tokens.splice(at..=sets, [TokenWithSpan { token: Token::Word(name), span }]);
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// `TABLE t` where a query may stand.
fn tables(tokens: &mut Vec<TokenWithSpan>) {
    let mut before: Option<usize> = None;
    let mut at = 0;
    // The query of a view, or of a table made of it, stands behind the first AS.
    let is_made = tokens.iter().find(|token| is_sign(token)).is_some_and(|token| keyword(token) == Keyword::CREATE);
    let of_made = tokens.iter().position(|token| is_made && keyword(token) == Keyword::AS);
    while at < tokens.len() {
        if matches!(tokens[at].token, Token::Whitespace(_)) {
            at += 1;
            continue;
        }
        let begins_query = match before.map(|before| &tokens[before]) {
            None => true,
            _ if before == of_made => true,
            Some(TokenWithSpan { token: Token::LParen | Token::SemiColon, .. }) => true,
            Some(token) => {
                matches!(keyword(token), Keyword::UNION | Keyword::ALL | Keyword::INTERSECT | Keyword::EXCEPT)
            }
        };
        let names_table = || following(tokens, at).next().is_some_and(|at| matches!(tokens[at].token, Token::Word(_)));
        if begins_query && keyword(&tokens[at]) == Keyword::TABLE && names_table() {
            let span = tokens[at].span;
            let word =
                |text: &str, keyword: Keyword| Token::Word(Word { value: text.to_owned(), quote_style: None, keyword });
            let spelled = [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM)];
            tokens.splice(at..=at, spelled.map(|token| TokenWithSpan { token, span }));
        }
        before = Some(at);
        at += 1;
    }
}
