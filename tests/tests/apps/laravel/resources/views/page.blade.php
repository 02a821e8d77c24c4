<title>{{ config('app.name') }}</title>
@foreach ($rows as $row)
<p>{{ $row }} {{ url('/items/' . $loop->index) }} {{ request()->query('q', 'none') }}</p>
@endforeach
