//! A workload as a Parquet file: written whole, and read as if somebody hostile had written it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::SchemaDescriptor;
use serde::{Deserialize, Serialize};
use tapstone_files::{Access, FileLimit, read_bytes, write_whole};
use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::columns::{
    COLUMNS, FLAG_AFTER_WAIT, FLAG_ON_TOKEN, FLAG_ONLY_LENGTH, FLAG_UNFINISHED, FLAGS,
    NO_MECHANISM, properties, schema,
};
use crate::model::{
    TemplateShape, Workload, WorkloadCall, WorkloadHead, WorkloadThread, pkcs11_function,
};

/// The version of the format, in the file's metadata.
const SCHEMA: &str = "tapstone.workload/1";
/// The name of the head in the file's metadata.
const HEAD: &str = "tapstone.workload";
/// Rows of a group.
const GROUP_ROWS: usize = 1 << 20;
/// A file of as many calls as are read is many times smaller.
const MOST_BYTES: FileLimit = FileLimit::mebibytes(512);
const MOST_HEAD_BYTES: usize = 16 << 20;
/// Ten years: no pause and no call is longer.
const LONGEST: u64 = 10 * 366 * 86_400 * 1_000_000_000;

/// How much of a workload is read at most.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadLimits {
    /// Calls of all threads together.
    pub calls: u64,
    /// Threads that the head may have.
    pub threads: usize,
    /// The highest number of a session or an object.
    pub numbers: u32,
}

impl Default for WorkloadLimits {
    fn default() -> Self {
        Self { calls: 10_000_000, threads: 65_536, numbers: 10_000_000 }
    }
}

/// Why a workload cannot be read or written. The text ends with a hint.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// The system says no.
    #[error("{}: {why}\nhint: `tapstone trace --workload FILE -- COMMAND` writes one", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It is no workload, or a broken one.
    #[error("{}: it is no workload that can be read: {why}\nhint: record the program again, with \
        `tapstone trace --workload FILE -- COMMAND`", path.display())]
    Unsound {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// The head as it is written: what the columns need to be understood, and the rest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHead {
    schema: String,
    workload: WorkloadHead,
    functions: Vec<String>,
    threads: Vec<WrittenThread>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenThread {
    process: u32,
    start_ns: Nanos,
}

/// Writes a workload. Only its owner may read it: it tells what a program does, and when.
///
/// # Errors
/// When it cannot be written.
pub fn write_workload(path: &Path, workload: &Workload) -> Result<(), WorkloadError> {
    let bytes = bytes_of_workload(workload)
        .map_err(|why| WorkloadError::Unsound { path: path.into(), why: why.to_string() })?;
    write_whole(path, Access::Owner, |to| to.write_all(&bytes))
        .map_err(|why| WorkloadError::File { path: path.into(), why })
}

/// Reads a workload from a file.
///
/// # Errors
/// When it cannot be read, is something else, or is larger than `limits` allow.
pub fn read_workload(path: &Path, limits: WorkloadLimits) -> Result<Workload, WorkloadError> {
    let bytes = read_bytes(path, MOST_BYTES)
        .map_err(|why| WorkloadError::File { path: path.into(), why })?;
    workload_of_bytes(bytes, limits)
        .map_err(|why| WorkloadError::Unsound { path: path.into(), why })
}

fn bytes_of_workload(workload: &Workload) -> Result<Vec<u8>, ParquetError> {
    let mut functions: Vec<&'static str> = Vec::new();
    for call in workload.threads.iter().flat_map(|thread| &thread.calls) {
        if !functions.contains(&call.function) {
            functions.push(call.function);
        }
    }
    let thread = |it: &WorkloadThread| WrittenThread { process: it.process, start_ns: it.start };
    let head = WrittenHead {
        schema: SCHEMA.to_owned(),
        workload: workload.head.clone(),
        functions: functions.iter().map(|name| (*name).to_owned()).collect(),
        threads: workload.threads.iter().map(thread).collect(),
    };
    let head = serde_json::to_string(&head).map_err(|why| ParquetError::External(why.into()))?;
    let mut writer = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties()))?;
    writer.append_key_value_metadata(KeyValue::new(HEAD.to_owned(), head));
    let calls = workload.threads.iter().enumerate();
    let calls: Vec<(usize, &WorkloadCall)> = calls
        .flat_map(|(number, thread)| thread.calls.iter().map(move |call| (number, call)))
        .collect();
    for rows in calls.chunks(GROUP_ROWS) {
        write_group(&mut writer, rows, &functions)?;
    }
    writer.into_inner()
}

fn write_group(
    writer: &mut SerializedFileWriter<Vec<u8>>,
    rows: &[(usize, &WorkloadCall)],
    functions: &[&'static str],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    let function = |name: &str| functions.iter().position(|known| *known == name).unwrap_or(0);
    let small = |of: &dyn Fn(&WorkloadCall) -> u32| -> Vec<i32> {
        rows.iter().map(|(_, call)| of(call).cast_signed()).collect()
    };
    let large = |of: &dyn Fn(&WorkloadCall) -> i64| -> Vec<i64> {
        rows.iter().map(|(_, call)| of(call)).collect()
    };
    let threads: Vec<i32> = rows.iter().map(|(thread, _)| *thread as i32).collect();
    write_column::<Int32Type>(&mut group, &threads)?;
    write_column::<Int32Type>(&mut group, &small(&|call| function(call.function) as u32))?;
    write_column::<Int64Type>(&mut group, &large(&|call| call.computing.0.cast_signed()))?;
    write_column::<Int64Type>(&mut group, &large(&|call| call.waiting.0.cast_signed()))?;
    write_column::<Int64Type>(&mut group, &large(&|call| call.duration.0.cast_signed()))?;
    write_column::<Int32Type>(&mut group, &small(&|call| call.session))?;
    let mechanism = |call: &WorkloadCall| call.mechanism.map_or(NO_MECHANISM, u64::cast_signed);
    write_column::<Int64Type>(&mut group, &large(&mechanism))?;
    write_column::<Int32Type>(&mut group, &small(&|call| call.object))?;
    write_column::<Int32Type>(&mut group, &small(&|call| call.input_bytes))?;
    write_column::<Int32Type>(&mut group, &small(&|call| call.output_bytes))?;
    write_column::<Int64Type>(&mut group, &large(&|call| call.shape.0.cast_signed()))?;
    write_column::<Int32Type>(&mut group, &small(&|call| call.detail))?;
    write_column::<Int64Type>(&mut group, &large(&|call| call.result.cast_signed()))?;
    write_column::<Int32Type>(&mut group, &small(&|call| flags(call).cast_unsigned()))?;
    group.close()?;
    Ok(())
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, None, None)?;
        column.close()?;
    }
    Ok(())
}

fn flags(call: &WorkloadCall) -> i32 {
    let flag = |is_set: bool, flag: i32| if is_set { flag } else { 0 };
    flag(call.after_wait, FLAG_AFTER_WAIT)
        | flag(call.only_length, FLAG_ONLY_LENGTH)
        | flag(call.on_token, FLAG_ON_TOKEN)
        | flag(call.unfinished, FLAG_UNFINISHED)
}

/// Reads a workload from the bytes of a file.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn workload_of_bytes(bytes: Vec<u8>, limits: WorkloadLimits) -> Result<Workload, String> {
    // The library panics on some broken pages, where it should return an error.
    let read = catch_unwind(AssertUnwindSafe(|| checked_workload(bytes, limits)));
    read.unwrap_or_else(|_| Err("its pages are broken".to_owned()))
}

fn checked_workload(bytes: Vec<u8>, limits: WorkloadLimits) -> Result<Workload, String> {
    let length = bytes.len() as u64;
    let bytes = Bytes::from(bytes);
    let reader = open(bytes.clone()).map_err(sentence)?;
    let metadata = reader.metadata().file_metadata();
    let rows = u64::try_from(metadata.num_rows()).unwrap_or(u64::MAX);
    if rows > limits.calls {
        return Err(format!("it says that it has {rows} calls, and {} are read", limits.calls));
    }
    let entries = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let head = entries.iter().find(|entry| entry.key == HEAD).and_then(|it| it.value.as_deref());
    let head = known_head(head.ok_or("it has no head of a workload")?, limits)?;
    if !footer(&bytes).is_some_and(|footer| footer.starts_with(&LISTED_COLUMNS)) {
        return Err("its columns are not those of a workload".to_owned());
    }
    let functions: Vec<&'static str> =
        head.functions.iter().map(|name| known_function(name)).collect::<Result<_, _>>()?;
    let thread = |it: &WrittenThread| WorkloadThread {
        process: it.process,
        start: it.start_ns,
        calls: Vec::new(),
    };
    let mut workload =
        Workload { head: head.workload, threads: head.threads.iter().map(thread).collect() };
    let mut read = 0;
    for number in 0..reader.num_row_groups() {
        let rows = expected_group(reader.metadata().row_group(number), length)?;
        read += rows as u64;
        if read > limits.calls {
            return Err(format!("it has more than {} calls", limits.calls));
        }
        let group = reader.get_row_group(number).map_err(sentence)?;
        let columns = GroupColumns::read(&*group, rows)?;
        columns.append_to(&mut workload, &functions, limits)?;
    }
    Ok(workload)
}

/// With the columns of a workload, and not with the file's own list of them: the library makes room
/// for as many as that says there are.
fn open(bytes: Bytes) -> Result<SerializedFileReader<Bytes>, ParquetError> {
    let columns = Arc::new(SchemaDescriptor::new(schema()?));
    let options = ReadOptionsBuilder::new().with_parquet_schema(columns).build();
    SerializedFileReader::new_with_options(bytes, options)
}

/// Parquet's description of a file, at its end before its length and a mark of four bytes.
fn footer(file: &[u8]) -> Option<&[u8]> {
    let (before, [length @ .., _, _, _, _]) = file.split_last_chunk::<8>()?;
    let length = u32::from_le_bytes(*length) as usize;
    before.get(before.len().checked_sub(length)?..)
}

/// The list of columns as it stands at the beginning of the footer of each workload: what footers
/// of one without calls and one with a call have in common. Then comes the number of calls.
static LISTED_COLUMNS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let files = [Vec::new(), vec![WorkloadCall::named("C_GetInfo")]].map(|calls| {
        let thread = WorkloadThread { calls, ..WorkloadThread::default() };
        bytes_of_workload(&Workload { threads: vec![thread], ..Workload::default() })
    });
    let [without, with] = files.map(|bytes| bytes.expect("it is written into memory"));
    let both = footer(&without).into_iter().flatten().zip(footer(&with).into_iter().flatten());
    both.take_while(|(one, other)| one == other).map(|(byte, _)| *byte).collect()
});

fn sentence(why: ParquetError) -> String {
    why.to_string()
}

fn known_head(text: &str, limits: WorkloadLimits) -> Result<WrittenHead, String> {
    if text.len() > MOST_HEAD_BYTES {
        return Err("its head is too long".to_owned());
    }
    #[derive(Deserialize)]
    struct Versioned {
        schema: String,
    }
    let unsound = |why: serde_json::Error| format!("its head cannot be understood: {why}");
    let version: Versioned = serde_json::from_str(text).map_err(unsound)?;
    if version.schema != SCHEMA {
        let schema: String = version.schema.chars().take(40).collect();
        return Err(format!("it is of version {schema:?}, and this program reads {SCHEMA}"));
    }
    let head: WrittenHead = serde_json::from_str(text).map_err(unsound)?;
    if head.threads.len() > limits.threads {
        let count = head.threads.len();
        return Err(format!("it has {count} threads, and {} are read", limits.threads));
    }
    if head.threads.iter().any(|thread| thread.start_ns.0 > LONGEST) {
        return Err("a thread begins later than ten years after the program".to_owned());
    }
    if head.workload.wall_ns.0 > LONGEST {
        return Err("the program ran longer than ten years".to_owned());
    }
    // It is shown as it stands.
    if let Some(name) = &head.workload.transaction {
        known_function(name)?;
    }
    Ok(head)
}

fn known_function(name: &str) -> Result<&'static str, String> {
    let short: String = name.chars().take(40).collect();
    pkcs11_function(name).ok_or_else(|| format!("{short:?} is no function of PKCS#11"))
}

/// The rows of a group whose columns are uncompressed, as long as it says, and in the file.
fn expected_group(group: &RowGroupMetaData, length: u64) -> Result<usize, String> {
    if group.num_columns() != COLUMNS.len() {
        return Err(format!("it has {} columns instead of {}", group.num_columns(), COLUMNS.len()));
    }
    for (column, (name, _)) in group.columns().iter().zip(COLUMNS) {
        if column.compression() != Compression::UNCOMPRESSED {
            return Err(format!("its column {name} is compressed"));
        }
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        let is_inside = start >= 0
            && column.compressed_size() >= 0
            && end.is_some_and(|end| end.cast_unsigned() <= length);
        if !is_inside {
            return Err(format!("its column {name} lies outside of the file"));
        }
        if column.num_values() != group.num_rows() {
            return Err(format!("its column {name} has not as many values as there are calls"));
        }
    }
    usize::try_from(group.num_rows()).map_err(|_| "a negative number of calls".to_owned())
}

/// The columns of a group, each with one value a row.
struct GroupColumns {
    small: Vec<Vec<i32>>,
    large: Vec<Vec<i64>>,
    rows: usize,
}

impl GroupColumns {
    fn read(group: &dyn RowGroupReader, rows: usize) -> Result<Self, String> {
        let mut columns = Self { small: Vec::new(), large: Vec::new(), rows };
        for (at, (name, physical)) in COLUMNS.into_iter().enumerate() {
            let is_large = physical == parquet::basic::Type::INT64;
            let read = if is_large {
                let values = read_column::<Int64Type>(group, at, rows).map_err(sentence)?;
                let count = values.len();
                columns.large.push(values);
                count
            } else {
                let values = read_column::<Int32Type>(group, at, rows).map_err(sentence)?;
                let count = values.len();
                columns.small.push(values);
                count
            };
            if read != rows {
                return Err(format!("its column {name} ends after {read} of {rows} calls"));
            }
        }
        Ok(columns)
    }

    fn append_to(
        &self,
        workload: &mut Workload,
        functions: &[&'static str],
        limits: WorkloadLimits,
    ) -> Result<(), String> {
        for row in 0..self.rows {
            let call = self.call(row, functions, limits)?;
            let thread = usize::try_from(self.small[0][row]).ok();
            let thread = thread.and_then(|thread| workload.threads.get_mut(thread));
            thread.ok_or("a call is of a thread that the head does not have")?.calls.push(call);
        }
        Ok(())
    }

    fn call(
        &self,
        row: usize,
        functions: &[&'static str],
        limits: WorkloadLimits,
    ) -> Result<WorkloadCall, String> {
        let [_, function, session, object, input, output, detail, flags] =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|at: usize| self.small[at][row]);
        let [computing, waiting, duration, mechanism, shape, result] =
            [0, 1, 2, 3, 4, 5].map(|at: usize| self.large[at][row]);
        let named = usize::try_from(function).ok().and_then(|at| functions.get(at).copied());
        let time = |value: i64| {
            let time = u64::try_from(value).ok().filter(|time| *time <= LONGEST);
            time.map(Nanos).ok_or("a time is negative or longer than ten years")
        };
        let number = |value: i32, what: &str| {
            let number = value.cast_unsigned();
            let is_known = number <= limits.numbers;
            is_known.then_some(number).ok_or_else(|| format!("{what} {number} is too high"))
        };
        if flags & !FLAGS != 0 {
            return Err("a call has flags that are not known".to_owned());
        }
        let shape = TemplateShape(shape.cast_unsigned());
        if !shape.is_sound() {
            return Err("a template has a shape that is not known".to_owned());
        }
        Ok(WorkloadCall {
            function: named.ok_or("a call is of a function that the head does not have")?,
            computing: time(computing)?,
            waiting: time(waiting)?,
            after_wait: flags & FLAG_AFTER_WAIT != 0,
            duration: time(duration)?,
            held_up: Nanos::ZERO,
            session: number(session, "session")?,
            mechanism: (mechanism != NO_MECHANISM).then_some(mechanism.cast_unsigned()),
            object: number(object, "object")?,
            input_bytes: input.cast_unsigned(),
            output_bytes: output.cast_unsigned(),
            shape,
            detail: detail.cast_unsigned(),
            result: result.cast_unsigned(),
            only_length: flags & FLAG_ONLY_LENGTH != 0,
            on_token: flags & FLAG_ON_TOKEN != 0,
            unfinished: flags & FLAG_UNFINISHED != 0,
            fails_anew: false,
        })
    }
}

fn read_column<T: DataType>(
    group: &dyn RowGroupReader,
    column: usize,
    rows: usize,
) -> Result<Vec<T::T>, ParquetError> {
    let described = group.metadata().column(column).column_descr_ptr();
    let pages =
        SoundPages { pages: group.get_column_page_reader(column)?, width: size_of::<T::T>() };
    let mut reader = ColumnReaderImpl::<T>::new(described, Box::new(pages));
    let mut values = Vec::new();
    while values.len() < rows {
        // Room grows with what is there.
        let most = (rows - values.len()).min(1 << 16);
        let (records, ..) = reader.read_records(most, None, None, &mut values)?;
        if records == 0 {
            break;
        }
    }
    Ok(values)
}

/// Pages of values of that many bytes each. The library makes room for as many values as a
/// dictionary says that it has: no more are believed than its page has room for.
struct SoundPages {
    pages: Box<dyn PageReader>,
    width: usize,
}

impl PageReader for SoundPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        match &page {
            Some(Page::DictionaryPage { buf, num_values, .. })
                if *num_values as usize > buf.len() / self.width =>
            {
                let problem = "a dictionary says that it is longer than its page";
                Err(ParquetError::General(problem.to_owned()))
            }
            _ => Ok(page),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}

impl Iterator for SoundPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests;
