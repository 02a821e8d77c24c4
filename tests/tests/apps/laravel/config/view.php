<?php
// Locations of templates.
return ['paths' => [resource_path('views')], 'compiled' => storage_path('framework/views')];
